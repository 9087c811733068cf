"""Variables: their value where a frame is live, and the expressions that gave it to them.

A live frame's variable has its last value. Where an earlier line is read, `x = f(x)` is resolved by the statements.
"""

import ast
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from devtrace.explaining.reading.argument_sources import is_as_given, of_only_call, of_parameter
from devtrace.explaining.reading.reader import MOST_ITEMS, SOUGHT_TENSOR, Reader
from devtrace.explaining.reading.returned_calls import is_passed_by, run_around, stored_in
from devtrace.explaining.reading.values import END, Activation, Definition, KnownValue, Several, TensorValue, Value
from devtrace.recording.columns import sites
from devtrace.recording.context.module_tree import is_module
from devtrace.source import parsing
from devtrace.source.comprehension_iteration import contents, turns
from devtrace.source.defuse import (
    Binding,
    bindings,
    gone_through,
    is_above,
    loops_round,
    nearest_first,
    path_of,
    unpacked,
)
from devtrace.source.matching import called_name, match_code, nodes_of, only, owner_of, variable, written_out
from devtrace.source.parsing import FunctionNode, parameters
from devtrace.source.safe_values import MISSING
from devtrace.source.vocabulary import gives_itself


def read_name(reader: Reader, node: ast.Name, activation: Activation) -> Value | None:
    name, scope, line = node.id, activation.scope, activation.line
    element = _of_comprehension(node, node.id, activation)
    has_failed = scope is not None and line == activation.now and name in scope.locals
    if element is not None and not has_failed:  # else its variable has its value now
        return _element(reader, *element, activation)
    found = nearest_first(_assigned(name, activation), line)
    above = next((each for each in found if is_above(activation.source, each, line)), None)
    if scope is not None:
        is_reassigned = _is_reassigned(name, activation)
        value = scope.lookup(name) if not is_reassigned else MISSING
        if value is not MISSING:  # else of a branch that this run did not take
            return reader.value(value, lambda: definitions_of_name(reader, node, activation))
        if above is None and is_reassigned:
            return next(map(reader.read, of_parameter(reader, name, activation)), None)
    elif above is None and name in activation.bound:
        return activation.bound[name]
    is_known = scope is None and activation.is_file and line == END and name in activation.globals
    if found and not is_known:
        return _given(reader, above or found[0], activation)
    return _from_outside(reader, name, activation) if scope is None else None


def _from_outside(reader: Reader, name: str, activation: Activation) -> Value | None:
    """Return what a function that has returned did not assign: an argument of its only call, a global."""
    if name in parameters(activation.body):
        return reader.first(of_only_call(reader, name, activation))
    value = activation.globals.get(name, MISSING)
    return None if value is MISSING else reader.value(value, lambda: of_globals(reader, name, activation))


def _is_reassigned(name: str, activation: Activation) -> bool:
    """Return whether a variable was assigned again after the line that is read."""
    if activation.line >= activation.now:
        return False
    since = [each.value for each in _assigned(name, activation) if activation.line <= each.line <= activation.now]
    is_of_module = activation.scope is not None and is_module(activation.scope.lookup(name))
    calls = [match_code(f"{name}.$method(...)", each) for each in since]  # of a module `x.to(device)` is that itself
    return any(not is_of_module or call is None or not gives_itself(call["method"]) for call in calls)


def _assigned(name: str, activation: Activation) -> list[Binding]:
    found = bindings(activation.source, activation.body, name)
    return [each for each in found if len(found) == 1 or not is_passed_by(activation, each.statement)]


def _given(reader: Reader, found: Binding, activation: Activation) -> Value | None:
    """Return the value that a statement gives its target."""
    run = activation.at(found.line)
    if found.loops:
        return _element(reader, found.value, found.position, run)
    value = _read_once(reader, found, run)
    return _with_appended(reader, found, value, activation) if isinstance(value, Several) else value


def _read_once(reader: Reader, found: Binding, run: Activation) -> Value | None:
    """Return the value that a statement of a run assigned, read once and kept.

    Without that `b = a + a; c = b + b; ...` would take time exponential in its length.
    """
    key = id(found.value), found.position
    known, value = reader.given.get(key, (None, None))
    if known is not None and known.scope is run.scope and known.bound is run.bound and known.level <= run.level:
        return value
    value = reader.read(Definition(found.value, found.position, run))
    if not isinstance(value, TensorValue) or value.row != SOUGHT_TENSOR:
        reader.given[key] = run, value
    return value


def _with_appended(reader: Reader, found: Binding, value: Several, activation: Activation) -> Several:
    """Return a list of a returned function, with the elements appended to it."""
    more = [
        reader.see(call.args[0], activation.at_node(call))
        for call in nodes_of(ast.Call, activation.body)
        if called_name(call) == "append" and call.args
        if (owner := owner_of(call)) is not None
        if any(each.value is found.value for each in _assigned(path_of(owner), activation))
    ]
    return value if value.keys else Several((*value.items, *more))


# Definitions.


def definitions_of_name(reader: Reader, node: ast.Name, activation: Activation) -> Iterator[Definition]:
    element = _of_comprehension(node, node.id, activation)
    return elements(reader, *element, activation) if element else definitions(reader, node.id, activation)


def definitions(reader: Reader, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield the expressions that gave a variable of a live frame its value, the likeliest first."""
    found = _assigned(name, activation)
    above = [each for each in found if is_above(activation.source, each, activation.line)]
    is_given = name in parameters(activation.body, starred=True)
    given = of_parameter(reader, name, activation) if is_given else ()
    if is_given and is_as_given(reader, name, activation):
        yield from given
        return
    yield from _all(reader, nearest_first(above, activation.line), activation)
    yield from given
    # A line below may have run first: a cell may run again, a function only comes back in a loop.
    below = [each for each in found if each not in above]
    if not activation.is_file:
        below = [each for each in below if loops_round(activation.source, each.statement, activation.line)]
    for binding in nearest_first(below, activation.line):
        before = _round_before(reader, binding, activation)
        for each in _all(reader, [binding], before) if before is not None else ():
            yield each._replace(is_of_repetition=not activation.is_file)
    is_live = activation.scope is not None and not found
    around = _of_comprehension(reader.node(activation.depth), name, activation) if is_live else None
    if around is not None:
        yield from elements(reader, *around, activation)
    if found or around is not None or is_given:
        return
    if activation.is_file or (activation.scope is not None and name not in activation.scope.locals):
        yield from of_globals(reader, name, activation)
    else:
        yield from _of_outer_function(reader, name, activation)


def _round_before(reader: Reader, found: Binding, activation: Activation) -> Activation | None:
    """Return a live frame as it was a round earlier: `layer` of `x = layer(x)` is the one before. None in the first."""
    scope, line = activation.scope, activation.line
    if scope is None or line != activation.now:
        return activation
    around = [*only(ast.For, loops_round(activation.source, found.statement, line))]
    before = list(islice(turns(around[:1], scope), MOST_ITEMS))
    now = (turn and all(scope.lookup(name) is value for name, value in turn.items()) for turn in before)
    at = next((at for at, is_now in enumerate(now) if is_now), None)
    if at == 0 and len(around) == 1:
        return None
    return replace(activation, scope=scope.having(before[at - 1])) if at else activation


def _all(reader: Reader, found: list[Binding], activation: Activation) -> Iterator[Definition]:
    for each in found:
        run = activation.at(each.line)
        if each.loops:
            yield from elements(reader, each.value, each.position, run)
        else:
            yield Definition(each.value, each.position, run)


def _of_outer_function(reader: Reader, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield the assignments of a closure variable in the outer function."""
    outer = activation.source.function(activation.body) if isinstance(activation.body, FunctionNode) else None
    if outer is None:
        return
    run = run_around(reader, activation.body, activation).at(END)
    yield from _all(reader, nearest_first(bindings(run.source, outer, name), END), run)


# Globals.


def of_globals(reader: Reader, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield the assignments of a global in a file, or in a notebook's cells, newest first; or its module."""
    own, cells = activation.source.file, [cell.file for cell in sites.cells_so_far()]
    sources = map(parsing.read, reversed(cells) if own in cells else [own])
    for run in (Activation.of_file(each, activation.globals, activation.level + 1) for each in sources):
        found = bindings(run.source, run.source.tree, name)
        yield from _all(reader, nearest_first(found, END), run)
        if not found:
            module, _, its_name = run.source.imports.get(name, "").rpartition(".")
            yield from of_module(reader, sys.modules.get(module), its_name, run.level)


def of_module(reader: Reader, module: Any, name: str, level: int) -> Iterator[Definition]:
    """Yield the statements of a module that give one of its names its value."""
    known = vars(module) if type(module) is type(sys) else {}
    run = run_of_file(known.get("__file__"), known, level)
    if run is not None:
        yield from of_globals(reader, name, run)


def run_of_file(file: Any, known: Mapping[str, Any], level: int) -> Activation | None:
    """Return a run of a file of the user's or of a package's, by its globals; None for any other."""
    source = parsing.read(file) if type(file) is str and level < 8 else parsing.NO_SOURCE
    run = Activation.of_file(source, known, level + 1)
    return run if source is not parsing.NO_SOURCE and run.is_theirs else None


# Loops and comprehensions.


def _of_comprehension(node: ast.AST, name: str, activation: Activation) -> tuple[ast.expr, Any] | None:
    """Return the iterable of a comprehension around a node that binds a name."""
    return next(gone_through(activation.source, node, name, ast.comprehension), None)


def _element(reader: Reader, iterated: ast.expr, position: Any, activation: Activation) -> Value | None:
    """Return the first readable element of an iterable, or None if the elements are not alike."""
    iterated, position = unpacked(iterated, position)
    value = reader.see(iterated, activation)
    items: Iterable[Value | None] = [reader.part(value, (0,), iterated, activation)]
    if isinstance(value, KnownValue):
        items = map(reader.value, islice(contents(value.value), 1))
    elif isinstance(value, Several):
        items = value.items
    found = [part for item in items if (part := reader.part(item, position, iterated, activation)) is not None]
    tensors = [each for each in found if isinstance(each, TensorValue)]  # of unknown dtype: alike if of one line
    kinds = {(each.device, each.dtype or (reader.of_dtypes and each.op and each.op.site)) for each in tensors}
    return found[0] if found and len(kinds) < 2 else None


def elements(reader: Reader, iterated: ast.expr, position: Any, activation: Activation) -> Iterator[Definition]:
    """Yield the expressions of an iterable's elements, if it is built in one piece."""
    iterated, position = unpacked(iterated, position)
    for whole in wholes(reader, iterated, activation):
        for made in _built(whole.node):
            yield Definition(made, position, whole.activation.at_node(made))
    value = reader.known(iterated, activation)
    if type(value) in (list, deque, set):
        for run in reader.live_activations():
            yield from (each._replace(position=position) for each in stored_in(reader, run, value))
    elif value is not MISSING and not issubclass(type(value), (list, tuple, dict, deque, set)):
        # It makes its elements while it is gone through: a loader, a generator.
        yield Definition(iterated, position, activation, is_source=True)


def wholes(reader: Reader, node: ast.expr, activation: Activation, levels: int = 3) -> Iterator[Definition]:
    """Yield a container, as it is written and as it was given or returned."""
    yield Definition(node, (), activation)
    is_copy = levels and variable(getattr(node, "func", None)) in ("dict", "list", "tuple")
    for whole in getattr(node, "args", [])[:1] if is_copy else ():
        yield from wholes(reader, whole, activation, levels - 1)
    for whole in reader.definitions(node, activation):
        if levels and isinstance(whole.node, ast.Call | ast.Name) and not whole.position:
            yield from wholes(reader, whole.node, whole.activation, levels - 1)
        else:
            yield whole


def _built(node: ast.AST) -> list[ast.expr]:
    """Return the expressions of the elements of a list in code; a dictionary is gone through by its keys."""
    match node:
        case ast.Call(args=[first, *_]) if called_name(node) in ("list", "tuple", "enumerate", "iter"):
            return _built(first)
    return written_out(node) if not isinstance(node, ast.Dict | ast.DictComp) else []
