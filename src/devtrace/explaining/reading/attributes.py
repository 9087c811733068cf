"""Attributes: looked up without running a property, and the statements of classes that assign them."""

import ast
import sys
from collections.abc import Iterator
from functools import cached_property, partial
from itertools import chain
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple

import torch

from devtrace.explaining.reading.argument_sources import from_only_call_of, put_in_place
from devtrace.explaining.reading.file_index import mentions
from devtrace.explaining.reading.names import of_module, run_of_file
from devtrace.explaining.reading.reader import Definitions, Reader
from devtrace.explaining.reading.returned_calls import (
    CACHED,
    arguments,
    arguments_of_call,
    from_files,
    is_readable,
    result_of_function,
    results_of,
    run_of,
)
from devtrace.explaining.reading.values import Activation, Bound, Definition, KnownValue, Several, TensorValue, Value
from devtrace.recording.columns.operator_info import COMPUTE, VIEW
from devtrace.recording.columns.process_history import history
from devtrace.recording.context.module_tree import class_attribute, class_name, is_module
from devtrace.runtime.quiet import gradient_of
from devtrace.source.defuse import bindings, moves_itself, statements, targets
from devtrace.source.matching import alone, called_name, calls_in, match_code, may_be_text, nodes_of, owner_of
from devtrace.source.parsing import FunctionNode
from devtrace.source.safe_values import MISSING, attribute, class_dict, classes_of, constructor_fields, evaluate
from devtrace.source.vocabulary import PARTS

_GIVES_BY_NAME: Final = frozenset({"setattr", "register_buffer", "register_parameter"})
_MAY_NOT_RUN: Final = (ast.If, ast.IfExp, ast.BoolOp, ast.ExceptHandler, FunctionNode)


class Called(NamedTuple):
    """Last call of a method, the `order`-th of all calls, in `run`; `call` is None where another method called it."""

    order: int
    call: ast.Call | None
    run: Activation

    def arguments(self, reader: Reader, function: FunctionType) -> Bound:
        """Return the arguments of the call by parameter, as far as they can be read."""
        if self.call is None or any(isinstance(argument, ast.Starred) for argument in self.call.args):
            return {}
        values = arguments_of_call(reader, function, [None], self.call, self.run)
        return {name: value for name, value in values.items() if value is not None}


def calls_so_far(reader: Reader, owner: object, methods: dict[str, FunctionType]) -> dict[str, Called]:
    """Return the last certain call of each method of an object; a method calls those that its code names, too."""
    last: dict[str, Called] = {}
    calls = [pair for run in [*reader.live_activations()][::-1] for pair in _calls_above(run, owner, methods)]
    for order, (call, run) in enumerate(calls, start=1):
        reached, new = set[str](), {called_name(call)}
        while new:
            reached |= new
            new = {inner for name in new for inner in methods[name].__code__.co_names if inner in methods} - reached
        last.update(dict.fromkeys(reached, Called(order, None, run)))
        last[called_name(call)] = Called(order, call, run)
    return last


def surely_runs(node: ast.AST, run: Activation) -> bool:
    """Return whether no branch stands between a node and the function that it is in."""
    return not any(isinstance(outer, _MAY_NOT_RUN) for outer in run.source.up_to(node, run.body))


def _calls_above(
    run: Activation, owner: object, methods: dict[str, FunctionType]
) -> Iterator[tuple[ast.Call, Activation]]:
    """Yield the calls of methods that a frame has made on an object, in the order of their lines."""
    span, scope = run.source.span, run.scope
    calls = [call for call in calls_in(run.body) if called_name(call) in methods and span(call).end_line < run.line]
    for call in sorted(calls, key=lambda call: span(call).line) if scope is not None else ():
        called_on = owner_of(call)
        if scope and called_on and evaluate(called_on, scope) is owner and surely_runs(call, run):
            yield call, run.at_node(call)


def read_attribute(reader: Reader, node: ast.Attribute, activation: Activation) -> Value | None:
    """Return the value of `x.name`, where x is a tensor, a dataclass that is gone, or a live object."""
    owner = reader.see(node.value, activation)
    if isinstance(owner, TensorValue):
        return _tensor_attribute(reader, owner, node, activation)
    if isinstance(owner, Several):  # a new dataclass, by its fields
        return owner.item(node.attr)
    whole = partial(_of_code_that_made_owner, reader, node, activation)
    return member(reader, owner.value, node.attr, activation, whole) if owner is not None else None


def _of_code_that_made_owner(reader: Reader, node: ast.Attribute, activation: Activation) -> Iterator[Definition]:
    """Yield `Track(mean, cov).cov` for `track.cov` after `track = Track(mean, cov)`."""
    for whole in reader.definitions(node.value, activation):
        if isinstance(whole.node, ast.Call | ast.Name) and not whole.position:
            yield whole._replace(node=attribute_of(whole.node, node.attr))


def attribute_of(owner: ast.expr, name: str) -> ast.expr:
    """Return the code of an attribute: `owner.name`."""
    return ast.copy_location(ast.Attribute(owner, name, ast.Load()), owner)


def _tensor_attribute(reader: Reader, owner: TensorValue, node: ast.Attribute, activation: Activation) -> Value | None:
    if node.attr == "device":
        return KnownValue(torch._C.device(owner.device))
    if node.attr == "dtype":
        return KnownValue(owner.dtype) if owner.dtype is not None else None
    if node.attr == "grad" and owner.live is not None:
        gradient = gradient_of(owner.live)
        return reader.value(gradient) if gradient is not None else None
    if node.attr == "data":
        return owner
    kind = COMPUTE if node.attr == "grad" else VIEW
    is_field = not hasattr(torch.Tensor, node.attr)  # `torch.linalg.qr(x).Q`: a field of torch's result
    return reader.derived(node.attr, kind, node, activation, [owner]) if node.attr in PARTS or is_field else None


def member(reader: Reader, owner: Any, name: str, activation: Activation, whole: Definitions = tuple) -> Value | None:
    """Return an attribute of a live object; `whole` yields it as an attribute of the code that made the object."""
    if issubclass(type(owner), ModuleType):
        value = vars(owner).get(name, MISSING)
        level = activation.level
        return None if value is MISSING else reader.value(value, lambda: of_module(reader, owner, name, level))
    if is_module(owner) and (in_place := put_in_place(reader, owner, name)) is not None:
        return in_place
    value = attribute(owner, name)
    if value is not MISSING and type(value) not in (classmethod, staticmethod):  # a class stores them unbound
        return reader.value(value, lambda: chain(assignments_of(reader, owner, name, activation), whole()))
    is_class = issubclass(type(owner), type)
    of_class = class_attribute(owner if is_class else type(owner), name)
    if type(of_class) is property and type(of_class.fget) is FunctionType:
        return result_of_function(reader, of_class.fget, arguments(of_class.fget, [KnownValue(owner)], {}), activation)
    if type(of_class) in (FunctionType, CACHED):
        return KnownValue(of_class if is_class else MethodType(of_class, owner))
    if type(of_class) is staticmethod:
        return KnownValue(of_class.__func__)
    if type(of_class) is classmethod:
        return KnownValue(MethodType(of_class.__func__, owner if is_class else type(owner)))
    return None


def assignments_of(reader: Reader, owner: Any, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield the assignments of an object's attribute: in its classes' methods, then elsewhere."""
    for kind in classes_of(owner if issubclass(type(owner), type) else type(owner)):
        yield from _assigned_in_methods(reader, kind, owner, name, activation)
        yield from _assigned_in_class_body(kind, name, activation)
        yield from _from_factory(reader, kind, owner, name, activation)
    fields = constructor_fields(type(owner))
    if name in fields:
        class_file = filter(None, [_run_of_file_with(type(owner), activation)])
        for argument in from_only_call_of(reader, class_name(type(owner)), name, fields, others=class_file):
            yield from (argument, *reader.definitions(argument.node, argument.activation))
    yield from _assigned_in_frames(reader, owner, name)
    if not is_module(owner):
        yield from from_files(reader, lambda file: mentions(file, name).attributes)
    elif history.modules.registered(owner, name) is not None:  # it is known by its stamp, unless its data is new
        yield from from_files(reader, lambda file: mentions(file, name).contents or mentions(file, "data").contents)


def _assigned_in_methods(reader: Reader, kind: type, owner: Any, name: str, activation: Activation) -> list[Definition]:
    """Return a class's assignments of an attribute: first its moves, then the latest call's, last the constructor's."""
    methods = _methods(kind)
    givers = [method for method in methods if not _GIVES_BY_NAME.union([name]).isdisjoint(method.__code__.co_names)]
    last_calls = calls_so_far(reader, owner, {method.__name__: method for method in methods}) if len(givers) > 1 else {}
    ranked = []
    for giver in givers:
        last_call = last_calls.get(giver.__name__)
        for origin in _assigned_in_method(reader, giver, owner, name, activation, last_call):
            order = last_call.order if last_call is not None and surely_runs(origin.node, origin.activation) else 0
            names = {part.attr for part in nodes_of(ast.Attribute, origin.node)}
            takes_former = order > 0 and name in names  # `torch.cat([self.rows, row])`
            rank = not origin.takes_former, -order  # moves first, then the latest call
            ranked.append((rank, origin._replace(takes_former=origin.takes_former or takes_former)))
    return [origin for _, origin in sorted(ranked, key=lambda pair: pair[0])]


def _methods(kind: type) -> list[FunctionType]:
    """Return the functions of a class, its constructor first."""
    values = [value.fget if type(value) is property else value for value in class_dict(kind).values()]
    unwrapped = [value.__func__ if type(value) is classmethod else value for value in values]
    functions = [method for method in unwrapped if is_readable(method) and method.__code__.co_argcount]
    return sorted(functions, key=lambda function: function.__name__ != "__init__")


def _assigned_in_method(
    reader: Reader, function: FunctionType, owner: Any, name: str, activation: Activation, last_call: Called | None
) -> Iterator[Definition]:
    """Yield the values that a method assigns to `self.name`."""
    bound = last_call.arguments(reader, function) if last_call is not None else {}
    run, self_name = _run_of_method(reader, function, owner, bound, activation), function.__code__.co_varnames[0]
    for binding in bindings(run.source, run.body, f"{self_name}.{name}"):
        if not binding.loops and match_code("None", binding.value) is None:
            own_move = moves_itself(binding.value, ast.Attribute(ast.Name(self_name), name))
            yield Definition(binding.value, binding.position, run.at(binding.line), takes_former=own_move)
    for statement in statements(run.body):
        yield from (Definition(value, (), run.at_node(value)) for value in _set_by_name(statement, self_name, name))


def _run_of_method(
    reader: Reader, function: FunctionType, owner: Any, bound: Bound, activation: Activation
) -> Activation:
    """Return a run of a method on an object; a run of a constructor lies before anything that still runs."""
    run = run_of(reader, function, {**bound, function.__code__.co_varnames[0]: KnownValue(owner)}, activation)
    if function.__name__ == "__init__" or (is_module(owner) and run.owner is None):
        run.depth, run.module = 0, None
    return run


def runs_that_fill(reader: Reader, node: ast.expr, activation: Activation) -> Iterator[Activation]:
    """Yield runs of the methods that may have filled an object's container: `self.cache[n] = table`."""
    match = match_code("$owner.$name", node)
    owner = reader.known(match["owner"], activation) if match is not None else MISSING
    if match is None or owner is MISSING or issubclass(type(owner), ModuleType):
        return
    live_bodies = [run.body for run in reader.live_activations()]
    for kind in classes_of(owner if issubclass(type(owner), type) else type(owner)):
        for method in (method for method in _methods(kind) if match["name"] in method.__code__.co_names):
            run = _run_of_method(reader, method, owner, {}, activation)
            if run.body not in live_bodies:
                yield run


def _set_by_name(statement: ast.stmt, owner: str, name: str) -> Iterator[ast.expr]:
    """Yield the value of `self.register_buffer("name", value)`, and that of `setattr(self, "name", value)`."""
    call = alone(statement)
    if not isinstance(call, ast.Call):
        return
    arguments = call.args[1:] if called_name(call) == "setattr" else call.args
    if called_name(call) not in _GIVES_BY_NAME or len(arguments) < 2:
        return
    if may_be_text(arguments[0], name) and owner in ast.unparse(call):
        yield arguments[1]


def _assigned_in_class_body(kind: type, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield the value of a name in the class body."""
    run = _run_of_file_with(kind, activation) if name in class_dict(kind) else None
    if run is None:
        return
    for body in nodes_of(ast.ClassDef, run.source.tree):
        assigned = bindings(run.source, body, name) if body.name == class_name(kind) else []
        yield from (Definition(each.value, each.position, run.at(each.line)) for each in assigned if not each.loops)


def _run_of_file_with(kind: type, activation: Activation) -> Activation | None:
    """Return a run of the file that defines a class; None for a file that is not read."""
    functions = _methods(kind)
    module = sys.modules.get(class_dict(kind).get("__module__", ""))
    global_names = vars(module) if type(module) is ModuleType else activation.globals
    file = functions[0].__code__.co_filename if functions else global_names.get("__file__", activation.source.file)
    return run_of_file(file, global_names, activation.level)


def _from_factory(reader: Reader, kind: type, owner: Any, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield the value of a dataclass field's `default_factory`, or of a cached property."""
    fields, cached = class_dict(kind).get("__dataclass_fields__"), class_dict(kind).get(name)
    field = fields.get(name) if type(fields) is dict else None
    is_cached = type(cached) is cached_property
    factory = getattr(cached, "func", None) if is_cached else getattr(field, "default_factory", None)
    if not is_readable(factory):
        return
    bound: Bound = {factory.__code__.co_varnames[0]: KnownValue(owner)} if is_cached else {}
    run = run_of(reader, factory, bound, activation)
    if not is_cached:  # the constructor ran it
        run.depth, run.module = 0, None
    yield from results_of(run)


def _assigned_in_frames(reader: Reader, owner: Any, name: str) -> Iterator[Definition]:
    """Yield the assignments to this object's attribute in live frames: `model.table = ...`."""
    for run in reader.live_activations():
        for statement in statements(run.body):
            for target, value, loops, _ in targets(statement):
                if loops or not isinstance(target, ast.Attribute) or target.attr != name or run.scope is None:
                    continue
                if evaluate(target.value, run.scope) is owner:
                    yield Definition(value, (), run.at_node(statement))
