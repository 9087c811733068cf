"""Calls that have returned: their source, arguments, stores and results."""

import ast
import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from types import FunctionType, MethodType
from typing import Any, Final, NamedTuple, TypeGuard

from devtrace.explaining.reading.reader import Reader
from devtrace.explaining.reading.values import END, Activation, Bound, Definition, KnownValue, Several, Value
from devtrace.recording.columns import sites
from devtrace.recording.context.module_tree import class_attribute, is_module
from devtrace.source import parsing
from devtrace.source.defuse import binds, given_by, moves_itself, statements, targets, was_passed_by
from devtrace.source.matching import alone, called_name, may_be_text, only, owner_of, variable
from devtrace.source.multi_value_expr import returned_in
from devtrace.source.object_walk import members
from devtrace.source.parsing import NO_CODE, FunctionNode, Source, Span, parameters
from devtrace.source.safe_values import MISSING, Scope, class_dict, classes_of, evaluate, with_wrapped
from devtrace.source.vocabulary import ADDS_AN_ITEM

CACHED: Final = type(functools.cache(len))


class Given(NamedTuple):
    """Arguments of a module's call: positional ones and keywords."""

    values: list[Value | None]
    words: Bound

    @classmethod
    def by(cls, reader: Reader, call: ast.Call, activation: Activation) -> "Given":
        """Return the arguments of a call, as written."""
        words = {word.arg: reader.see(word.value, activation) for word in call.keywords if word.arg}
        return cls([reader.see(each, activation) for each in call.args], words)

    def to_hook(self, *, with_words: bool) -> list[Value | None]:
        """Return the arguments as a hook gets them: a tuple, and a dictionary if it asked for one."""
        words = Several(tuple(self.words.values()), tuple(self.words))
        return [Several(tuple(self.values)), words] if with_words else [Several(tuple(self.values))]


def is_theirs(value: Any) -> TypeGuard[FunctionType]:
    """Return whether an object is a function of the user's or of a package's, to be read."""
    return type(value) is FunctionType and sites.files[value.__code__.co_filename] in (sites.USER, sites.LIBRARY)


def run_of(reader: Reader, function: FunctionType, bound: Bound, activation: Activation) -> Activation:
    """Return a run of a function that was called from another and has returned; without source one of no code."""
    code = function.__code__
    source = parsing.read(code.co_filename)
    body = source.function_of_code(code)
    if body is None or activation.level > 8:
        return Activation.of_file(parsing.NO_SOURCE, {})
    closed_over = {each.key: reader.value(each.value) for each in members(function)}
    own = bound.get(code.co_varnames[0]) if code.co_argcount else None
    module = own.value if isinstance(own, KnownValue) and is_module(own.value) else None
    is_built = code.co_name == "__init__" or (module is not None and _is_part_of_constructor(module, code.co_name))
    return Activation(
        source,
        body,
        END,
        activation.depth,
        function.__globals__,
        bound={**closed_over, **bound},
        caller=activation.caller,
        module=activation.module if module is None or is_built else module,
        owner=None if is_built else module or activation.owner,
        level=activation.level + 1,
    )


def _is_part_of_constructor(module: Any, method: str) -> bool:
    """Return whether a constructor of a module's own classes names a method: `self.reset()`."""
    constructors = (class_dict(kind).get("__init__") for kind in classes_of(type(module)))
    return any(method in each.__code__.co_names for each in constructors if is_theirs(each))


def run_around(reader: Reader, node: ast.AST, activation: Activation) -> Activation:
    """Return a run of the function around a node of a file; only its globals are known."""
    source = activation.source
    body: ast.AST = next((each for each in source.ancestors(node) if isinstance(each, FunctionNode)), source.tree)
    for live in reader.live_activations():
        if live.source is source and live.body is body:
            return live.at_node(node)
    owner = source.nearest(ast.ClassDef, body)
    return Activation(
        source,
        body,
        source.span(node).line,
        0,  # it ran before anything that still runs
        activation.globals,
        bound=dict.fromkeys(parameters(body)[:1]) if owner is not None else {},  # nobody knows `self`
        level=activation.level + 1,
    )


def one_of(reader: Reader, written: Callable[[Source], list[ast.expr]]) -> Iterator[Definition]:
    """Yield what is written in the user's files as definitions, each equally likely."""
    found = [(node, run) for run in reader.files() for node in written(run.source)]
    for node, run in found:
        yield Definition(node, (), run_around(reader, node, run), is_one_of_many=len(found) > 1)


def arguments(function: FunctionType, given: list[Value | None], words: Mapping[str, Value | None]) -> Bound:
    """Return the arguments of a call by parameter, defaults included."""
    positional = function.__code__.co_varnames[: function.__code__.co_argcount]
    last = zip(reversed(positional), reversed(function.__defaults__ or ()), strict=False)
    defaults = {**dict(last), **(function.__kwdefaults__ or {})}
    known = {name: KnownValue(value) for name, value in defaults.items()}
    return {**known, **dict(zip(positional, given, strict=False)), **words}


def given_by_call(
    reader: Reader, function: FunctionType, before: list[Value | None], call: ast.Call, activation: Activation
) -> Bound:
    """Return the arguments of a call by parameter; the first ones, such as `self`, are not written."""
    given = Given.by(reader, call, activation)
    return arguments(function, [*before, *given.values], given.words)


def returned(reader: Reader, function: FunctionType, given: Bound, activation: Activation) -> Value | None:
    """Return the result of a function: the value of its last readable `return`."""
    return reader.first(results_of(run_of(reader, function, given, activation)))


def results_of(run: Activation) -> list[Definition]:
    """Return the possible results of a run, the last first, without those in branches that it did not take."""
    results = _yielded(run.body) or returned_in(run.body)[::-1]
    found = [each for each in results if not is_passed_by(run, run.source.statement(each))]
    return [Definition(each, (), run.at_node(each)) for each in found]


def _yielded(body: ast.AST) -> list[ast.expr]:
    """Return the list of what a generator yields, if the function is one."""
    given = (each.value for each in statements(body) if isinstance(each, ast.Expr | ast.Assign))
    parts = [each.value for each in only(ast.Yield, given) if each.value is not None]
    return [ast.copy_location(ast.List(elts=parts, ctx=ast.Load()), parts[0])] if parts else []


def is_passed_by(run: Activation, statement: ast.stmt) -> bool:
    """Return whether a statement is in a branch that the run did not take, by its arguments.

    Of a live frame, by its variables now, without those that the function changes.
    """
    here = run.source.node_at(Span(run.now, -1, -1, -1)) if run.scope is not None else NO_CODE
    return was_passed_by(statement, run.source, here if here is not NO_CODE else run.body, (), given_to(run))


def given_to(run: Activation) -> Scope:
    """Return the arguments of a run, by parameter."""
    given = (path for each in statements(run.body) for path, _ in given_by(run.source, each))
    changed = {path.partition(".")[0] for path in given} | {
        name for each in statements(run.body) for name in binds(each)
    }
    if run.scope is not None:
        own = {name: value for name, value in run.scope.locals.items() if name not in changed}
        return Scope(own, {} if run.is_file else run.scope.globals)
    bound = {name: value for name, value in run.bound.items() if value is not None and name not in changed}
    known = {name: each.value if isinstance(each, KnownValue) else each for name, each in bound.items()}
    return Scope(known, {name: value for name, value in run.globals.items() if name not in changed})


def function_of(value: Any) -> tuple[FunctionType | None, list[Value | None]]:
    """Return the function of theirs that calling an object runs, with what it is given before the arguments: `self`.

    Of a wrapper of `functools.cache`, or of torch's (`@torch.no_grad()`), that is the function within.
    """
    before: list[Value | None] = []
    if type(value) is MethodType:
        value, before = value.__func__, [KnownValue(value.__self__)]
    elif type(value) not in (FunctionType, CACHED):
        value, before = class_attribute(type(value), "__call__"), [KnownValue(value)]
    wrapped = with_wrapped(value.__wrapped__ if type(value) is CACHED else value)
    return next(filter(is_theirs, wrapped), None), before


def stored_in(reader: Reader, run: Activation, owner: Any, key: Any = MISSING) -> Iterator[Definition]:
    """Yield the values that a run stores in a container: `cache[key] = x`, `cache.append(x)`."""
    for statement in statements(run.body):
        for target, value in put_under(statement, key):
            if _is(reader, target.value, owner, run):
                there = _with_key(run.at_node(statement), target.slice, key)
                yield Definition(value, (), there, takes_former=moves_itself(value, target))
        call = alone(statement)
        container = owner_of(call)
        if not isinstance(call, ast.Call) or container is None or not call.args:
            continue
        if called_name(call) in ADDS_AN_ITEM and _is(reader, container, owner, run):
            yield Definition(call.args[-1], (), run.at_node(statement))


def put_under(statement: ast.stmt, key: Any) -> Iterator[tuple[ast.Subscript, ast.expr]]:
    """Yield the values that a statement may store at a key: `kwargs["mask"] = mask`."""
    for target, value, loops, _ in targets(statement):
        if isinstance(target, ast.Subscript) and not loops and (type(key) is not str or may_be_text(target.slice, key)):
            yield target, value


def _with_key(run: Activation, index: ast.expr, key: Any) -> Activation:
    """Return a run with the key as an argument, if a parameter is the key: `def add(self, name, default)`."""
    if run.scope is None and key is not MISSING and variable(index) in parameters(run.body):
        return replace(run, bound={**run.bound, variable(index): KnownValue(key)})
    return run


def _is(reader: Reader, node: ast.expr, owner: Any, run: Activation) -> bool:
    if run.scope is not None:
        return evaluate(node, run.scope) is owner
    return reader.known(node, run) is owner
