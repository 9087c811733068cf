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


class CallInputs(NamedTuple):
    """Arguments of a module's call: positional ones and keywords."""

    values: list[Value | None]
    words: Bound

    @classmethod
    def by(cls, reader: Reader, call: ast.Call, activation: Activation) -> "CallInputs":
        """Return the arguments of a call, as written."""
        words = {word.arg: reader.see(word.value, activation) for word in call.keywords if word.arg}
        return cls([reader.see(argument, activation) for argument in call.args], words)

    def to_hook(self, *, with_words: bool) -> list[Value | None]:
        """Return the arguments as a hook gets them: a tuple, and a dictionary if it asked for one."""
        words = Several(tuple(self.words.values()), tuple(self.words))
        return [Several(tuple(self.values)), words] if with_words else [Several(tuple(self.values))]


def is_readable(value: Any) -> TypeGuard[FunctionType]:
    """Return whether an object is a function of the user's or of a package's, to be read."""
    return type(value) is FunctionType and sites.files[value.__code__.co_filename] in (sites.USER, sites.LIBRARY)


def run_of(reader: Reader, function: FunctionType, bound: Bound, activation: Activation) -> Activation:
    """Return a run, now over, of a function that was called in `activation`; without source a run of no code."""
    code = function.__code__
    source = parsing.read(code.co_filename)
    body = source.function_of_code(code)
    if body is None or activation.level > 8:
        return Activation.of_file(parsing.NO_SOURCE, {})
    closed_over = {step.key: reader.value(step.value) for step in members(function)}
    self_value = bound.get(code.co_varnames[0]) if code.co_argcount else None
    module = self_value.value if isinstance(self_value, KnownValue) and is_module(self_value.value) else None
    is_setup = code.co_name == "__init__" or (module is not None and _is_part_of_constructor(module, code.co_name))
    return Activation(
        source,
        body,
        END,
        activation.depth,
        function.__globals__,
        bound={**closed_over, **bound},
        caller=activation.caller,
        module=activation.module if module is None or is_setup else module,  # setting up is no call
        owner=None if is_setup else module or activation.owner,
        level=activation.level + 1,
    )


def _is_part_of_constructor(module: Any, method: str) -> bool:
    """Return whether a constructor of a module's own classes names a method: `self.reset()`."""
    constructors = (class_dict(kind).get("__init__") for kind in classes_of(type(module)))
    return any(method in function.__code__.co_names for function in constructors if is_readable(function))


def run_around(reader: Reader, node: ast.AST, activation: Activation) -> Activation:
    """Return the live run of the function around a node; else a run of which only the globals are known."""
    source = activation.source
    body: ast.AST = next((outer for outer in source.ancestors(node) if isinstance(outer, FunctionNode)), source.tree)
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


def from_files(reader: Reader, find: Callable[[Source], list[ast.expr]]) -> Iterator[Definition]:
    """Yield the code that `find` returns for the user's files, as definitions that are equally likely."""
    places = [(node, run) for run in reader.files() for node in find(run.source)]
    for node, run in places:
        yield Definition(node, (), run_around(reader, node, run), is_one_of_many=len(places) > 1)


def arguments(function: FunctionType, passed: list[Value | None], words: Mapping[str, Value | None]) -> Bound:
    """Return the arguments of a call by parameter, defaults included."""
    positional = function.__code__.co_varnames[: function.__code__.co_argcount]
    by_default = zip(reversed(positional), reversed(function.__defaults__ or ()), strict=False)
    defaults = {**dict(by_default), **(function.__kwdefaults__ or {})}
    default_values = {name: KnownValue(value) for name, value in defaults.items()}
    return {**default_values, **dict(zip(positional, passed, strict=False)), **words}


def arguments_of_call(
    reader: Reader, function: FunctionType, before: list[Value | None], call: ast.Call, activation: Activation
) -> Bound:
    """Return the arguments of a call by parameter; `before` has those that the code does not show, such as `self`."""
    passed = CallInputs.by(reader, call, activation)
    return arguments(function, [*before, *passed.values], passed.words)


def result_of_function(reader: Reader, function: FunctionType, bound: Bound, activation: Activation) -> Value | None:
    """Return the result of a function: the value of its last readable `return`."""
    return reader.first(results_of(run_of(reader, function, bound, activation)))


def results_of(run: Activation) -> list[Definition]:
    """Return the possible results of a run, the last first, without those in branches that it did not take."""
    results = _yielded_list(run.body) or returned_in(run.body)[::-1]
    reached = [result for result in results if not is_passed_by(run, run.source.statement(result))]
    return [Definition(result, (), run.at_node(result)) for result in reached]


def _yielded_list(body: ast.AST) -> list[ast.expr]:
    """Return the code `[[a, b]]` for a generator that yields `a` and `b`; an empty list for another function."""
    values = (statement.value for statement in statements(body) if isinstance(statement, ast.Expr | ast.Assign))
    parts = [node.value for node in only(ast.Yield, values) if node.value is not None]
    return [ast.copy_location(ast.List(elts=parts, ctx=ast.Load()), parts[0])] if parts else []


def is_passed_by(run: Activation, statement: ast.stmt) -> bool:
    """Return whether a statement is in a branch that the run did not take, by its arguments.

    In a live frame its variables count as arguments, unless the function assigns them.
    """
    here = run.source.node_at(Span(run.now, -1, -1, -1)) if run.scope is not None else NO_CODE  # what a live frame runs
    return was_passed_by(statement, run.source, here if here is not NO_CODE else run.body, (), arguments_of_run(run))


def arguments_of_run(run: Activation) -> Scope:
    """Return the arguments of a run by parameter, and its globals, without the names that its body assigns."""
    assigned_paths = (path for statement in statements(run.body) for path, _ in given_by(run.source, statement))
    changed = {path.partition(".")[0] for path in assigned_paths} | {
        name for statement in statements(run.body) for name in binds(statement)
    }
    if run.scope is not None:
        unchanged = {name: value for name, value in run.scope.locals.items() if name not in changed}
        return Scope(unchanged, {} if run.is_file else run.scope.globals)
    bound = {name: value for name, value in run.bound.items() if value is not None and name not in changed}
    known = {name: value.value if isinstance(value, KnownValue) else value for name, value in bound.items()}
    return Scope(known, {name: value for name, value in run.globals.items() if name not in changed})


def function_of(value: Any) -> tuple[FunctionType | None, list[Value | None]]:
    """Return the readable function that a call of an object runs, and the values before its arguments, such as `self`.

    For a wrapper of `functools.cache`, or of torch's (`@torch.no_grad()`), that is the wrapped function.
    """
    before: list[Value | None] = []
    if type(value) is MethodType:
        value, before = value.__func__, [KnownValue(value.__self__)]
    elif type(value) not in (FunctionType, CACHED):
        value, before = class_attribute(type(value), "__call__"), [KnownValue(value)]
    wrapped = with_wrapped(value.__wrapped__ if type(value) is CACHED else value)
    return next(filter(is_readable, wrapped), None), before


def stored_in(reader: Reader, run: Activation, owner: Any, key: Any = MISSING) -> Iterator[Definition]:
    """Yield the values that a run stores in a container: `cache[key] = x`, `cache.append(x)`."""
    for statement in statements(run.body):
        for target, value in stores_at(statement, key):
            if _refers_to(reader, target.value, owner, run):
                there = _with_key(run.at_node(statement), target.slice, key)
                yield Definition(value, (), there, takes_former=moves_itself(value, target))
        call = alone(statement)
        container = owner_of(call)
        if not isinstance(call, ast.Call) or container is None or not call.args:
            continue
        if called_name(call) in ADDS_AN_ITEM and _refers_to(reader, container, owner, run):
            yield Definition(call.args[-1], (), run.at_node(statement))


def stores_at(statement: ast.stmt, key: Any) -> Iterator[tuple[ast.Subscript, ast.expr]]:
    """Yield the values that a statement may store at a key: `kwargs["mask"] = mask`."""
    for target, value, loops, _ in targets(statement):
        if isinstance(target, ast.Subscript) and not loops and (type(key) is not str or may_be_text(target.slice, key)):
            yield target, value


def _with_key(run: Activation, index: ast.expr, key: Any) -> Activation:
    """Return a run with the key as an argument, if a parameter is the index: `name` of `def add(self, name, x)`."""
    if run.scope is None and key is not MISSING and variable(index) in parameters(run.body):
        return replace(run, bound={**run.bound, variable(index): KnownValue(key)})
    return run


def _refers_to(reader: Reader, node: ast.expr, owner: Any, run: Activation) -> bool:
    if run.scope is not None:
        return evaluate(node, run.scope) is owner
    return reader.known(node, run) is owner
