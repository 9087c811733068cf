"""What each step computes on the CPU from what no step changes, and sends: once would do, or the device could do it.

share = self.edges / self.edges.sum(1)
x = share.to(x.device) @ x                  # `self.edges` is a plain attribute of the module: it stayed on the CPU
"""

from __future__ import annotations

from typing import Final

from devtrace.costs.copies import source_text
from devtrace.costs.cost_findings import Needless
from devtrace.costs.factories import are_drawn, steps_of
from devtrace.costs.repeated_costs import Habit
from devtrace.costs.writes import are_written
from devtrace.diagnosis.evidence.finding_parts import as_culprit
from devtrace.diagnosis.evidence.moves import name_of
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.trace.ids import OpId, TensorId
from devtrace.words.catalogue import sentence

_MOST: Final = 12  # tensors on the way from what was there before


def of_unchanged(habit: Habit) -> Needless | None:
    """Find copies of what the same tensors gave in each step, where nothing has written to these."""
    if not habit.is_of_many_steps:
        return None
    queries, steps = habit.queries, steps_of(habit)
    roots = {frozenset(_roots(queries, op, since)) for since, op in steps}
    (first, *others) = roots
    if others or not first or are_written(queries, first, habit.ops[0], habit.ops[-1]):
        return None
    largest = max(first, key=queries.size)
    name = name_of(queries, largest)
    culprit = as_culprit(queries, largest, [name], queries.site(queries.born(largest))) if name else None
    return Needless(
        habit, sentence("copy.unchanged", name=source_text(habit)), sentence("copy.unchanged.help"), culprit
    )


def _roots(queries: TraceQueries, op: OpId, since: OpId) -> set[TensorId]:
    """Return what was there before, of all that an op takes; nothing if some of it is new data, a part, or drawn."""
    rows, roots, makers = queries.carried(op), set[TensorId](), list[OpId]()
    for row in rows:
        maker, base = queries.producer(row), queries.base(row)
        if queries.size(row) < queries.size(base):
            return set()  # a part may be another one in the next step
        if maker <= since:
            roots.add(base)
            continue
        given = queries.made_from(row)
        if not given or queries.trace.ops.number("device", maker) != queries.host or len(rows) > _MOST:
            return set()
        makers.append(maker)
        rows += [each for each in given if each not in rows]
    made = {queries.base(row) for row in rows} - roots
    is_drawn = are_drawn(queries, [makers]) or any("dropout" in queries.op_name(maker) for maker in makers)
    is_computed = any(queries.kind(maker) == "compute" for maker in makers)
    return roots if is_computed and not is_drawn and not are_written(queries, made, since, op) else set()
