"""Elements of a device's tensor that a line reads one by one: all of them at once are one wait.

for token in tokens: words.append(vocabulary[token.item()])     # tokens.tolist() has them all
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from devtrace.diagnosis.costs.copies import MANY
from devtrace.diagnosis.costs.habits import Habit
from devtrace.diagnosis.costs.loops import loops_around
from devtrace.diagnosis.costs.needless import Needless
from devtrace.diagnosis.costs.writes import are_written
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.source.matching import is_path, names_in, nodes_of
from devtrace.words.catalogue import sentence

_OF_EACH: Final = 4
"""So many elements of each tensor that a line reads."""
_STEPS_BACK: Final = 4
_SAMPLE: Final = 2_000


def of_elements(habit: Habit) -> Needless | None:
    """Find a line of the user's that reads very many elements of few tensors, to which nothing writes meanwhile."""
    queries, ops, found = habit.queries, habit.ops[:_SAMPLE], habit.found
    if habit.count < MANY or len(ops) < MANY or found is None or not habit.is_of_the_user:
        return None
    bases = [base for op in ops if (base := _owner_of_element(queries, op)) >= 0]
    name = next(_names(found), "")
    if not name or len(bases) * 2 < len(ops) or len(bases) < _OF_EACH * len(set(bases)):
        return None
    if are_written(queries, set(bases), min(ops), max(ops)):
        return None
    return Needless(habit, sentence("host-sync.to-pick", name=name), sentence("host-sync.to-pick.help", name=name))


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


def _names(found: SourceNode) -> Iterator[str]:
    """Yield the code of tensors whose elements a line reads: what loops go through, or what it takes items of."""
    source, names = found.source, names_in(found.node)
    inside = [found.node, *source.ancestors(found.node)]
    rounds = [loop for loop in loops_around(found) if isinstance(loop, ast.For | ast.AsyncFor)]
    generators = [each for outer in inside for each in getattr(outer, "generators", ())]
    for loop in (*generators, *rounds):
        if names_in(loop.target) & names and is_path(tensor := _gone_through(loop.target, loop.iter, names)):
            yield source.segment(tensor)
    for part in nodes_of(ast.Subscript, found.node):
        if is_path(part.value):
            yield source.segment(part.value)


def _gone_through(target: ast.expr, iterated: ast.expr, names: set[str]) -> ast.expr:
    """Return what gives one of these names: `y` of `for i, v in enumerate(y)`."""
    if isinstance(target, ast.Tuple) and isinstance(iterated, ast.Call) and iterated.args:
        at = next((at for at, part in enumerate(target.elts) if names_in(part) & names), 0)
        return iterated.args[min(at, len(iterated.args) - 1)]
    return iterated
