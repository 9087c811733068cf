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

from devtrace.explaining.reading.argument_sources import definitions_of_parameter, from_only_call, still_holds_argument
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
    """Return the value of a variable at the line that is read: in a live frame, or by the statements above it."""
    name, scope, line = node.id, activation.scope, activation.line
    element = _iterable_of_comprehension(node, node.id, activation)
    has_failed = scope is not None and line == activation.now and name in scope.locals
    if element is not None and not has_failed:  # else the frame still has the variable's value
        return _any_element(reader, *element, activation)
    assigned = nearest_first(_bindings_of(name, activation), line)
    above = next((binding for binding in assigned if is_above(activation.source, binding, line)), None)
    if scope is not None:
        is_reassigned = _is_reassigned(name, activation)
        value = scope.lookup(name) if not is_reassigned else MISSING
        if value is not MISSING:  # else of a branch that this run did not take
            return reader.value(value, lambda: definitions_of_name(reader, node, activation))
        if above is None and is_reassigned:
            return next(map(reader.read, definitions_of_parameter(reader, name, activation)), None)
    elif above is None and name in activation.bound:
        return activation.bound[name]
    has_final_value = scope is None and activation.is_file and line == END and name in activation.globals
    if assigned and not has_final_value:
        return _value_of_binding(reader, above or assigned[0], activation)
    return _value_from_outside(reader, name, activation) if scope is None else None


def _value_from_outside(reader: Reader, name: str, activation: Activation) -> Value | None:
    """Return a variable that a finished function did not assign: an argument of its only call, or a global."""
    if name in parameters(activation.body):
        return reader.first(from_only_call(reader, name, activation))
    value = activation.globals.get(name, MISSING)
    return None if value is MISSING else reader.value(value, lambda: of_globals(reader, name, activation))


def _is_reassigned(name: str, activation: Activation) -> bool:
    """Return whether a variable was assigned again after the line that is read."""
    if activation.line >= activation.now:
        return False
    later = [new.value for new in _bindings_of(name, activation) if activation.line <= new.line <= activation.now]
    is_of_module = activation.scope is not None and is_module(activation.scope.lookup(name))
    calls = [match_code(f"{name}.$method(...)", value) for value in later]  # a module's `x.to(device)` is x itself
    return any(not is_of_module or call is None or not gives_itself(call["method"]) for call in calls)


def _bindings_of(name: str, activation: Activation) -> list[Binding]:
    all_bindings = bindings(activation.source, activation.body, name)
    return [each for each in all_bindings if len(all_bindings) == 1 or not is_passed_by(activation, each.statement)]


def _value_of_binding(reader: Reader, binding: Binding, activation: Activation) -> Value | None:
    """Return the value that a statement gives its target."""
    run = activation.at(binding.line)
    if binding.loops:
        return _any_element(reader, binding.value, binding.position, run)
    value = _read_once(reader, binding, run)
    return _with_appended(reader, binding, value, activation) if isinstance(value, Several) else value


def _read_once(reader: Reader, binding: Binding, run: Activation) -> Value | None:
    """Return the value that a statement of a run assigned, read once and kept.

    Without that `b = a + a; c = b + b; ...` would take time exponential in its length.
    """
    key = id(binding.value), binding.position
    former, value = reader.cache.get(key, (None, None))
    if former is not None and former.scope is run.scope and former.bound is run.bound and former.level <= run.level:
        return value
    value = reader.read(Definition(binding.value, binding.position, run))
    if not isinstance(value, TensorValue) or value.row != SOUGHT_TENSOR:
        reader.cache[key] = run, value
    return value


def _with_appended(reader: Reader, binding: Binding, value: Several, activation: Activation) -> Several:
    """Return a list, as it was assigned, with the elements that the function appended to it."""
    appended = [
        reader.see(call.args[0], activation.at_node(call))
        for call in nodes_of(ast.Call, activation.body)
        if called_name(call) == "append" and call.args
        if (owner := owner_of(call)) is not None
        if any(other.value is binding.value for other in _bindings_of(path_of(owner), activation))
    ]
    return value if value.keys else Several((*value.items, *appended))


# Definitions.


def definitions_of_name(reader: Reader, node: ast.Name, activation: Activation) -> Iterator[Definition]:
    element = _iterable_of_comprehension(node, node.id, activation)
    return elements(reader, *element, activation) if element else definitions(reader, node.id, activation)


def definitions(reader: Reader, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield the expressions that gave a variable of a live frame its value, the likeliest first."""
    assigned = _bindings_of(name, activation)
    above = [binding for binding in assigned if is_above(activation.source, binding, activation.line)]
    is_parameter = name in parameters(activation.body, starred=True)
    arguments = definitions_of_parameter(reader, name, activation) if is_parameter else ()
    if is_parameter and still_holds_argument(reader, name, activation):
        yield from arguments
        return
    yield from _definitions_of(reader, nearest_first(above, activation.line), activation)
    yield from arguments
    # A line below may have run before: any line of a cell that runs again, in a function one of the same loop.
    below = [binding for binding in assigned if binding not in above]
    if not activation.is_file:
        below = [binding for binding in below if loops_round(activation.source, binding.statement, activation.line)]
    for binding in nearest_first(below, activation.line):
        before = _round_before(reader, binding, activation)
        for definition in _definitions_of(reader, [binding], before) if before is not None else ():
            yield definition._replace(is_of_repetition=not activation.is_file)
    is_live = activation.scope is not None and not assigned
    iterable = _iterable_of_comprehension(reader.node(activation.depth), name, activation) if is_live else None
    if iterable is not None:
        yield from elements(reader, *iterable, activation)
    if assigned or iterable is not None or is_parameter:
        return
    if activation.is_file or (activation.scope is not None and name not in activation.scope.locals):
        yield from of_globals(reader, name, activation)
    else:
        yield from _definitions_in_outer_function(reader, name, activation)


def _round_before(reader: Reader, binding: Binding, activation: Activation) -> Activation | None:
    """Return a live frame with a loop's variables one round earlier: `layer` of `x = layer(x)`; None in the first."""
    scope, line = activation.scope, activation.line
    if scope is None or line != activation.now:
        return activation
    loops = [*only(ast.For, loops_round(activation.source, binding.statement, line))]
    rounds = list(islice(turns(loops[:1], scope), MOST_ITEMS))
    are_now = (turn and all(scope.lookup(name) is value for name, value in turn.items()) for turn in rounds)
    index = next((index for index, is_now in enumerate(are_now) if is_now), None)
    if index == 0 and len(loops) == 1:
        return None
    return replace(activation, scope=scope.having(rounds[index - 1])) if index else activation


def _definitions_of(reader: Reader, assigned: list[Binding], activation: Activation) -> Iterator[Definition]:
    for binding in assigned:
        run = activation.at(binding.line)
        if binding.loops:
            yield from elements(reader, binding.value, binding.position, run)
        else:
            yield Definition(binding.value, binding.position, run)


def _definitions_in_outer_function(reader: Reader, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield the assignments of a closure variable in the outer function."""
    outer = activation.source.function(activation.body) if isinstance(activation.body, FunctionNode) else None
    if outer is None:
        return
    run = run_around(reader, activation.body, activation).at(END)
    yield from _definitions_of(reader, nearest_first(bindings(run.source, outer, name), END), run)


# Globals.


def of_globals(reader: Reader, name: str, activation: Activation) -> Iterator[Definition]:
    """Yield the assignments of a global in a file, or in a notebook's cells, newest first; or its module."""
    file, cells = activation.source.file, [cell.file for cell in sites.cells_so_far()]
    sources = map(parsing.read, reversed(cells) if file in cells else [file])
    for run in (Activation.of_file(source, activation.globals, activation.level + 1) for source in sources):
        assigned = bindings(run.source, run.source.tree, name)
        yield from _definitions_of(reader, nearest_first(assigned, END), run)
        if not assigned:
            module, _, its_name = run.source.imports.get(name, "").rpartition(".")
            yield from of_module(reader, sys.modules.get(module), its_name, run.level)


def of_module(reader: Reader, module: Any, name: str, level: int) -> Iterator[Definition]:
    """Yield the statements of a module that give one of its names its value."""
    members = vars(module) if type(module) is type(sys) else {}
    run = run_of_file(members.get("__file__"), members, level)
    if run is not None:
        yield from of_globals(reader, name, run)


def run_of_file(file: Any, members: Mapping[str, Any], level: int) -> Activation | None:
    """Return a run of a file of the user's or of a package's, by its globals; None for any other."""
    source = parsing.read(file) if type(file) is str and level < 8 else parsing.NO_SOURCE
    run = Activation.of_file(source, members, level + 1)
    return run if source is not parsing.NO_SOURCE and run.is_readable else None


# Loops and comprehensions.


def _iterable_of_comprehension(node: ast.AST, name: str, activation: Activation) -> tuple[ast.expr, Any] | None:
    """Return the iterable of a comprehension around a node that binds a name."""
    return next(gone_through(activation.source, node, name, ast.comprehension), None)


def _any_element(reader: Reader, iterated: ast.expr, position: Any, activation: Activation) -> Value | None:
    """Return the first readable element of an iterable, or None if the elements are not alike."""
    iterated, position = unpacked(iterated, position)
    value = reader.see(iterated, activation)
    items: Iterable[Value | None] = [reader.part(value, (0,), iterated, activation)]
    if isinstance(value, KnownValue):
        items = map(reader.value, islice(contents(value.value), 1))
    elif isinstance(value, Several):
        items = value.items
    parts = [part for item in items if (part := reader.part(item, position, iterated, activation)) is not None]
    tensors = [part for part in parts if isinstance(part, TensorValue)]  # of unknown dtype: alike if of one line
    kinds = {(tensor.device, tensor.dtype or (reader.of_dtypes and tensor.op and tensor.op.site)) for tensor in tensors}
    return parts[0] if parts and len(kinds) < 2 else None


def elements(reader: Reader, iterated: ast.expr, position: Any, activation: Activation) -> Iterator[Definition]:
    """Yield the code of an iterable's elements: as written, as stored in a live list, else the iterable itself."""
    iterated, position = unpacked(iterated, position)
    for whole in wholes(reader, iterated, activation):
        for element in _written_elements(whole.node):
            yield Definition(element, position, whole.activation.at_node(element))
    value = reader.known(iterated, activation)
    if type(value) in (list, deque, set):
        for run in reader.live_activations():
            yield from (stored._replace(position=position) for stored in stored_in(reader, run, value))
    elif value is not MISSING and not issubclass(type(value), (list, tuple, dict, deque, set)):
        # It makes its elements while a loop runs over it: a loader, a generator.
        yield Definition(iterated, position, activation, is_source=True)


def wholes(reader: Reader, node: ast.expr, activation: Activation, levels: int = 3) -> Iterator[Definition]:
    """Yield the code of a container, and the code that it came from: an assignment, an argument, a result."""
    yield Definition(node, (), activation)
    is_copy = levels and variable(getattr(node, "func", None)) in ("dict", "list", "tuple")
    for whole in getattr(node, "args", [])[:1] if is_copy else ():
        yield from wholes(reader, whole, activation, levels - 1)
    for whole in reader.definitions(node, activation):
        if levels and isinstance(whole.node, ast.Call | ast.Name) and not whole.position:
            yield from wholes(reader, whole.node, whole.activation, levels - 1)
        else:
            yield whole


def _written_elements(node: ast.AST) -> list[ast.expr]:
    """Return the elements of a list in code; none of a dictionary, since a loop over it gives its keys."""
    match node:
        case ast.Call(args=[first, *_]) if called_name(node) in ("list", "tuple", "enumerate", "iter"):
            return _written_elements(first)
    return written_out(node) if not isinstance(node, ast.Dict | ast.DictComp) else []
