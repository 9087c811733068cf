"""Copies that `non_blocking=True` only begins: their data must not be read, or written again, before they are done.

scores = y.to("cpu", non_blocking=True)
print(scores.mean())                            # bad: nothing has waited for the copy, old values may be read
"""

import numpy as np

from devtrace.costs.copies import source_text
from devtrace.costs.cost_findings import Needless
from devtrace.costs.repeated_costs import SAMPLE, Habit
from devtrace.costs.writes import first_write
from devtrace.diagnosis.evidence.trace_queries import Rows, TraceQueries
from devtrace.trace.ids import OpId
from devtrace.words.catalogue import sentence


def of_early_reads(habit: Habit) -> Needless | None:
    """Find a copy to the host that it works on before anything has waited."""
    queries, inputs = habit.queries, habit.queries.trace.ops.lists("inputs")
    works = (queries.trace.ops.ints("device") == queries.host) & ~queries.is_kind("view")
    waits = _waits(queries)
    for op in _begun(habit):
        takes = inputs.rows[np.isin(queries.bases[inputs.flat], queries.outputs(op))]
        first = next((OpId(each) for each in takes[works[takes]].tolist() if each > op), op)
        if first > op and np.searchsorted(waits, first) == np.searchsorted(waits, op, "right"):
            return _needless(habit, first, "copy.too-soon", "copy.too-soon.help")
    return None


def of_early_writes(habit: Habit) -> Needless | None:
    """Find pinned memory that is written again before anything has waited for the copy from it."""
    queries, waits = habit.queries, _waits(habit.queries)
    for op in _begun(habit, ("non_blocking", "pinned")):
        bases = [queries.base(row) for row in queries.carried(op)]
        later = waits[np.searchsorted(waits, op, "right") :]
        end = OpId(int(later[0]) if len(later) else len(queries.trace.ops) - 1)
        written = first_write(queries, bases, op, end)
        if written > op:
            return _needless(habit, written, "copy.overwritten", "copy.overwritten.help")
    return None


def _needless(habit: Habit, at: OpId, key: str, help_key: str) -> Needless:
    site = habit.queries.site(habit.queries.op_user(at))
    return Needless(habit, sentence(key, name=source_text(habit), site=site), sentence(help_key))


def _begun(habit: Habit, columns: tuple[str, ...] = ("non_blocking",)) -> list[OpId]:
    """Return the first copies of a line that did not block."""
    table = habit.queries.trace.copies
    chosen = habit.rows[np.all([table.ints(column)[habit.rows] > 0 for column in columns], axis=0)]
    return table.ints("op")[chosen][:SAMPLE].tolist()  # type: ignore[no-any-return]


def _waits(queries: TraceQueries) -> Rows:
    """Return the ops at which the host has waited for all copies before: syncs, and copies that block."""
    table = queries.trace.copies
    blocking = table.ints("op")[table.ints("non_blocking") <= 0]
    return np.sort(np.concatenate([np.flatnonzero(queries.is_kind("sync")), blocking]))
