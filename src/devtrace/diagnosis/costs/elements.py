"""Elements of a device's tensor that a line reads one by one: all of them at once are one wait.

for token in tokens: words.append(vocabulary[token.item()])     # tokens.tolist() has them all
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from devtrace.diagnosis.costs.copies import MANY
from devtrace.diagnosis.costs.habits import Habit
from devtrace.diagnosis.costs.needless import Needless, UntilThen
from devtrace.diagnosis.costs.writes import are_written
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.source.flow import rounds
from devtrace.source.matching import called_name, calls_in, is_path, names_in, nodes_of
from devtrace.source.vocabulary import COPIES, PICKS, VIEWS
from devtrace.words.catalogue import sentence

_OF_EACH: Final = 4
"""So many elements of each tensor that a line reads."""
_STEPS_BACK: Final = 4
_GIVES_ELEMENTS: Final = VIEWS | PICKS | COPIES
_SAMPLE: Final = 2_000


def of_elements(habit: Habit) -> Needless | None:
    """Find a line of the user's that reads very many elements of few tensors, to which nothing writes meanwhile."""
    queries, ops, found = habit.queries, habit.ops[:_SAMPLE], habit.found
    if habit.count < MANY or len(ops) < MANY or found is None:
        return None
    bases = [base for op in ops if (base := _owner_of_element(queries, op)) >= 0]
    names = next(_names(found), [])
    if not names or len(bases) * 2 < len(ops) or len(bases) < _OF_EACH * len(set(bases)):
        return None
    if are_written(queries, set(bases), min(ops), max(ops)):
        return None
    named = [f"`{name}`" for name in names[: max(len(set(bases[:_OF_EACH])), 1)]]
    help = sentence("host-sync.to-pick.help", names=named, code=[f"`{name.strip('`')}.tolist()`" for name in named])
    return Needless(habit, sentence("host-sync.to-pick", names=named), help, until=_with_a_copy(habit))


def _with_a_copy(habit: Habit) -> UntilThen | None:
    """Return what the caller of a package can give it instead: a copy on the CPU, where no module computes."""
    called, calls = habit.queries.source_node(habit.site), habit.queries.trace.ops.ints("call")[habit.ops]
    if called is None or not habit.queries.package(habit.line) or (calls >= 0).any():
        return None
    given = (part for call in calls_in(called.node) for part in call.args if is_path(part))
    name = next((called.source.segment(part) for part in given), "")
    return UntilThen("", f"{name}.cpu()") if name else None


def _owner_of_element(queries: TraceQueries, op: int) -> int:
    """Return the tensor of which an op reads an element, or what was computed from one; else -1."""
    rows = queries.inputs(op)[:1]
    for _ in range(_STEPS_BACK):
        if not rows or queries.dims[rows[0]] != 0:
            return -1
        base = queries.base(rows[0])
        if base != rows[0] and queries.dims[base] > 0:
            return base
        rows = queries.made_from(rows[0])[:1]
    return -1


def _names(found: SourceNode) -> Iterator[list[str]]:
    """Yield the code of tensors whose elements a line reads: what loops go through, or what it takes items of."""
    source, names = found.source, names_in(found.node)
    for loop in rounds(source, found.node):
        given = _gone_through(loop.target, loop.iter, names) if names_in(loop.target) & names else []
        if given and all(is_path(each) or called_name(each) in _GIVES_ELEMENTS for each in given):
            yield [source.segment(tensor) for tensor in given]
    for part in nodes_of(ast.Subscript, found.node):
        if part is not found.node and is_path(part.value):  # of `counts[i]` itself the index is read
            yield [source.segment(part.value)]


def _gone_through(target: ast.expr, iterated: ast.expr, names: set[str]) -> list[ast.expr]:
    """Return what gives these names: `y` of `for i, v in enumerate(y)`, both of `for a, b in zip(x, y)`."""
    if isinstance(target, ast.Tuple) and isinstance(iterated, ast.Call) and iterated.args:
        used = [at for at, part in enumerate(target.elts) if names_in(part) & names]
        return list(dict.fromkeys(iterated.args[min(at, len(iterated.args) - 1)] for at in used))
    return [iterated]
