"""Attributes: looked up without running a property, and the statements of classes that assign them."""

import ast
import sys
from collections.abc import Iterator
from functools import cached_property, partial
from itertools import chain
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final, NamedTuple

import torch

from devtrace.explaining.reading.argument_sources import of_only_call_of, put_in_place
from devtrace.explaining.reading.file_index import named
from devtrace.explaining.reading.names import of_module, run_of_file
from devtrace.explaining.reading.reader import Definitions, Reader
from devtrace.explaining.reading.returned_calls import (
    CACHED,
    arguments,
    given_by_call,
    is_theirs,
    one_of,
    results_of,
    returned,
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
    """Last call of a method: `order` is 1 for the first method called.

    `call` is its code, if a live frame called it, in `run`.
    """

    order: int
    call: ast.Call | None
    run: Activation

    def given(self, reader: Reader, function: FunctionType) -> Bound:
        """Return the arguments of the call by parameter, as far as they can be read."""
        if self.call is None or any(isinstance(each, ast.Starred) for each in self.call.args):
            return {}
        found = given_by_call(reader, function, [None], self.call, self.run)
        return {name: value for name, value in found.items() if value is not None}


def calls_so_far(reader: Reader, owner: object, methods: dict[str, FunctionType]) -> dict[str, Called]:
    """Return the last certain call of each method of an object, including calls between its methods."""
    last: dict[str, Called] = {}
    calls = [pair for run in [*reader.live_activations()][::-1] for pair in _calls_above(run, owner, methods)]
    for order, (call, run) in enumerate(calls, start=1):
        reached, new = set[str](), {called_name(call)}
        while new:
            reached |= new
            new = {each for name in new for each in methods[name].__code__.co_names if each in methods} - reached
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
    owner = reader.see(node.value, activation)
    if isinstance(owner, TensorValue):
        return _of_tensor(reader, owner, node, activation)
    if isinstance(owner, Several):  # a new dataclass, by its fields
        return owner.item(node.attr)
    whole = partial(_of_whole, reader, node, activation)
    return member(reader, owner.value, node.attr, activation, whole) if owner is not None else None


def _of_whole(reader: Reader, node: ast.Attribute, activation: Activation) -> Iterator[Definition]:
    """Yield an attribute of what may have given its owner: `Track(mean, cov).cov`."""
    for whole in reader.definitions(node.value, activation):
        if isinstance(whole.node, ast.Call | ast.Name) and not whole.position:
            yield whole._replace(node=attribute_of(whole.node, node.attr))


def attribute_of(owner: ast.expr, name: str) -> ast.expr:
    """Return the code of an attribute: `owner.name`."""
    return ast.copy_location(ast.Attribute(owner, name, ast.Load()), owner)


def _of_tensor(reader: Reader, owner: TensorValue, node: ast.Attribute, activation: Activation) -> Value | None:
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
    is_field = not hasattr(torch.Tensor, node.attr)  # of what torch returned in one: `torch.linalg.qr(x).Q`
    return reader.derived(node.attr, kind, node, activation, [owner]) if node.attr in PARTS or is_field else None


def member(reader: Reader, owner: Any, name: str, activation: Activation, whole: Definitions = tuple) -> Value | None:
    """Return an attribute of a live object; `whole` gives it as that of what may have made the object."""
    if issubclass(type(owner), ModuleType):
        found = vars(owner).get(name, MISSING)
        level = activation.level
        return None if found is MISSING else reader.value(found, lambda: of_module(reader, owner, name, level))
    if is_module(owner) and (in_place := put_in_place(reader, owner, name)) is not None:
        return in_place
    value = attribute(owner, name)
    if value is not MISSING and type(value) not in (classmethod, staticmethod):  # as a class itself has them
        return reader.value(value, lambda: chain(of_class(reader, owner, name, activation), whole()))
    is_class = issubclass(type(owner), type)
    found = class_attribute(owner if is_class else type(owner), name)
    if type(found) is property and type(found.fget) is FunctionType:
        return returned(reader, found.fget, arguments(found.fget, [KnownValue(owner)], {}), activation)
    if type(found) in (FunctionType, CACHED):
        return KnownValue(found if is_class else MethodType(found, owner))
    if type(found) is staticmethod:
        return KnownValue(found.__func__)
    if type(found) is classmethod:
        return KnownValue(MethodType(found.__func__, owner if is_class else type(owner)))
    return None


def of_class(reader: Reader, owner: Any, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield the assignments of an object's attribute: in its classes' methods, then elsewhere."""
    for kind in classes_of(owner if issubclass(type(owner), type) else type(owner)):
        yield from _in_methods(reader, kind, owner, name, activation)
        yield from _in_class_body(kind, name, activation)
        yield from _of_factory(reader, kind, owner, name, activation)
    fields = constructor_fields(type(owner))
    if name in fields:
        own = filter(None, [_file_of(type(owner), activation)])
        for given in of_only_call_of(reader, class_name(type(owner)), name, fields, others=own):
            yield from (given, *reader.definitions(given.node, given.activation))
    yield from _of_frames(reader, owner, name)
    if not is_module(owner):
        yield from one_of(reader, lambda source: named(source, name).attributes)
    elif history.modules.registered(owner, name) is not None:  # it is known by its stamp, unless its data is new
        yield from one_of(reader, lambda source: named(source, name).contents or named(source, "data").contents)


def _in_methods(reader: Reader, kind: type, owner: Any, name: str, activation: Activation) -> list[Definition]:
    """Return the assignments of an attribute in a class's methods: its moves, the last live call, the constructor."""
    methods = _methods(kind)
    givers = [each for each in methods if not _GIVES_BY_NAME.union([name]).isdisjoint(each.__code__.co_names)]
    called = calls_so_far(reader, owner, {each.__name__: each for each in methods}) if len(givers) > 1 else {}
    dated = []
    for giver in givers:
        late = called.get(giver.__name__)
        for found in _given_in(reader, giver, owner, name, activation, late):
            order = late.order if late is not None and surely_runs(found.node, found.activation) else 0
            names = {each.attr for each in nodes_of(ast.Attribute, found.node)}
            takes = order > 0 and name in names  # `torch.cat([self.rows, row])`
            rank = not found.takes_former, -order  # its own moves first
            dated.append((rank, found._replace(takes_former=found.takes_former or takes)))
    return [found for _, found in sorted(dated, key=lambda pair: pair[0])]


def _methods(kind: type) -> list[FunctionType]:
    """Return the functions of a class, its constructor first."""
    values = [value.fget if type(value) is property else value for value in class_dict(kind).values()]
    found = [value.__func__ if type(value) is classmethod else value for value in values]
    theirs = [each for each in found if is_theirs(each) and each.__code__.co_argcount]
    return sorted(theirs, key=lambda each: each.__name__ != "__init__")


def _given_in(
    reader: Reader, function: FunctionType, owner: Any, name: str, activation: Activation, called: Called | None
) -> Iterator[Definition]:
    """Yield the values that a method assigns to `self.name`."""
    given = called.given(reader, function) if called is not None else {}
    run, first = _run_of_method(reader, function, owner, given, activation), function.__code__.co_varnames[0]
    for each in bindings(run.source, run.body, f"{first}.{name}"):
        if not each.loops and match_code("None", each.value) is None:
            own_move = moves_itself(each.value, ast.Attribute(ast.Name(first), name))
            yield Definition(each.value, each.position, run.at(each.line), takes_former=own_move)
    for statement in statements(run.body):
        yield from (Definition(value, (), run.at_node(value)) for value in _registered(statement, first, name))


def _run_of_method(
    reader: Reader, function: FunctionType, owner: Any, given: Bound, activation: Activation
) -> Activation:
    """Return a run of a method on an object; of a method that set the object up, an early one."""
    run = run_of(reader, function, {**given, function.__code__.co_varnames[0]: KnownValue(owner)}, activation)
    if function.__name__ == "__init__" or (is_module(owner) and run.owner is None):
        run.depth, run.module = 0, None
    return run


def runs_that_fill(reader: Reader, node: ast.expr, activation: Activation) -> Iterator[Activation]:
    """Yield runs of the methods that may have filled an object's container: `self.cache[n] = table`."""
    found = match_code("$owner.$name", node)
    owner = reader.known(found["owner"], activation) if found is not None else MISSING
    if found is None or owner is MISSING or issubclass(type(owner), ModuleType):
        return
    live = [run.body for run in reader.live_activations()]
    for kind in classes_of(owner if issubclass(type(owner), type) else type(owner)):
        for method in (each for each in _methods(kind) if found["name"] in each.__code__.co_names):
            run = _run_of_method(reader, method, owner, {}, activation)
            if run.body not in live:
                yield run


def _registered(statement: ast.stmt, owner: str, name: str) -> Iterator[ast.expr]:
    """Yield the value of `self.register_buffer("name", value)`, and that of `setattr(self, "name", value)`."""
    call = alone(statement)
    if not isinstance(call, ast.Call):
        return
    given = call.args[1:] if called_name(call) == "setattr" else call.args
    if called_name(call) not in _GIVES_BY_NAME or len(given) < 2:
        return
    if may_be_text(given[0], name) and owner in ast.unparse(call):
        yield given[1]


def _in_class_body(kind: type, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield the value of a name in the class body."""
    run = _file_of(kind, activation) if name in class_dict(kind) else None
    if run is None:
        return
    for body in nodes_of(ast.ClassDef, run.source.tree):
        found = bindings(run.source, body, name) if body.name == class_name(kind) else []
        yield from (Definition(each.value, each.position, run.at(each.line)) for each in found if not each.loops)


def _file_of(kind: type, activation: Activation) -> Activation | None:
    """Return a run of the file with a class."""
    functions = _methods(kind)
    module = sys.modules.get(class_dict(kind).get("__module__", ""))
    known = vars(module) if type(module) is ModuleType else activation.globals
    file = functions[0].__code__.co_filename if functions else known.get("__file__", activation.source.file)
    return run_of_file(file, known, activation.level)


def _of_factory(reader: Reader, kind: type, owner: Any, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield the value of a dataclass field's `default_factory`, or of a cached property."""
    fields, cached = class_dict(kind).get("__dataclass_fields__"), class_dict(kind).get(name)
    field = fields.get(name) if type(fields) is dict else None
    is_cached = type(cached) is cached_property
    factory = getattr(cached, "func", None) if is_cached else getattr(field, "default_factory", None)
    if not is_theirs(factory):
        return
    given: Bound = {factory.__code__.co_varnames[0]: KnownValue(owner)} if is_cached else {}
    run = run_of(reader, factory, given, activation)
    if not is_cached:
        run.depth, run.module = 0, None
    yield from results_of(run)


def _of_frames(reader: Reader, owner: Any, name: str) -> Iterator[Definition]:
    """Yield the assignments to this object's attribute in live frames: `model.table = ...`."""
    for run in reader.live_activations():
        for statement in statements(run.body):
            for target, value, loops, _ in targets(statement):
                if loops or not isinstance(target, ast.Attribute) or target.attr != name or run.scope is None:
                    continue
                if evaluate(target.value, run.scope) is owner:
                    yield Definition(value, (), run.at_node(statement))
