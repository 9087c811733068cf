"""Casts that a line makes in each step for nothing: there and back again, or of the same tensor each time.

h = h.float()                   # nothing computes in float32 before
h = h.to(torch.bfloat16)        # this: both can go
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from devtrace.diagnosis.costs.edits_of_copies import move_above_loop
from devtrace.diagnosis.costs.habits import Habit, habits
from devtrace.diagnosis.costs.needless import Needless
from devtrace.diagnosis.costs.steps import FEWEST
from devtrace.diagnosis.costs.writes import are_written
from devtrace.diagnosis.evidence.in_findings import as_culprit
from devtrace.diagnosis.evidence.moves import name_of
from devtrace.diagnosis.evidence.source_text import brief
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.ledger import Tally, casts, counted
from devtrace.source.dtypes import is_cast
from devtrace.source.matching import called_name, owner_of
from devtrace.words.catalogue import sentence


def casts_of_each_step(queries: TraceQueries, tally: Tally) -> Iterator[Habit]:
    """Yield the casts that a line of the user's asks for in each step of a loop."""
    counts = tally.counts | {"casts": counted(queries, tally, casts(queries))}
    for habit in habits(queries.of_dtypes, replace(tally, counts=counts), "casts"):
        own = habit.rows[queries.trace.ops.ints("site")[habit.rows] == habit.site]
        each = replace(habit, rows=own)
        if len(own) >= FEWEST and _asks(each.queries, each.site) and each.is_of_each_step:
            yield each


def of_casts_back(habit: Habit) -> Needless | None:
    """Find a line that casts back what another one cast to a larger dtype, with nothing computed between."""
    back = {op: first for op in habit.ops if (first := _cast_before(habit.queries, op)) >= 0}
    some = replace(habit, rows=np.array(list(back), dtype=np.int64), count=len(back) * habit.count // len(habit.ops))
    if (
        len(back) < FEWEST
        or not some.is_of_each_step
        or any(are_written(habit.queries, habit.queries.outputs(first), first, op) for op, first in back.items())
    ):
        return None
    queries, first = habit.queries, next(iter(back.values()))
    row, wide = queries.inputs(first)[0], queries.outputs(first)[0]
    site, name = queries.site(queries.op_site(first)), _name(habit, row)
    dtype, larger = queries.trait(row), queries.trait(wide)
    why = sentence("dtype-cost.back", name=name, dtype=dtype, larger=larger, site=site)
    culprit = as_culprit(queries, row, [name], queries.site(queries.born(row)))
    return Needless(some, why, sentence("dtype-cost.back.help", site=site), culprit, severity="note")


def of_casts_again(habit: Habit) -> Needless | None:
    """Find a line that casts the same tensors in each step, though nothing writes to them between.

    Parameters are for training, which a short run may not have reached.
    """
    queries, rows = habit.queries, {habit.queries.inputs(op)[0] for op in habit.ops}
    row, bases = min(rows), {queries.base(row) for row in rows}
    is_data = queries.dims[row] > 0 and queries.trace.tensors.raw("role", queries.base(row)) != "parameter"
    is_again = len(habit.ops) >= FEWEST * len(rows) and is_data
    if not is_again or are_written(queries, bases, habit.ops[0] - 1, habit.ops[-1]):
        return None
    dtype, name = queries.trait(queries.outputs(habit.ops[0])[0]), _name(habit, row)
    is_trained = bool(np.isin(queries.trace.ops.ints("forward"), habit.ops).any())
    edit = None if is_trained else move_above_loop(habit)
    why = sentence("dtype-cost.again", name=name, dtype=dtype)
    help = sentence("dtype-cost.again.help", name=name, dtype=dtype)
    help = sentence("dtype-cost.above-loop", name=name, code=edit.after.strip()) if edit is not None else help
    culprit = as_culprit(queries, row, [name], queries.site(queries.born(queries.base(row))))
    return Needless(habit, why, help, culprit, (edit,) if edit is not None else (), severity="note")


def _asks(queries: TraceQueries, site: int) -> bool:
    """Return whether code of the user's is a call that casts: autocast's own casts are at the line of an op."""
    found = queries.source_node(site)
    return found is not None and not queries.package(site) and is_cast(called_name(found.node))


def _cast_before(queries: TraceQueries, op: int) -> int:
    """Return the cast to a larger dtype that a cast takes back, through views alone; -1 where it is none."""
    row = queries.outputs(op)[0]
    wide = queries.base(queries.source(row))
    first, origin = queries.producer(wide), queries.source(wide)
    if first < 0 or origin < 0 or queries.kind(first) != "copy" or queries.trait(origin) != queries.trait(row):
        return -1
    sizes = queries.trace.tensors.ints("bytes")
    is_widened = sizes[wide] > sizes[origin] and queries.device(origin) == queries.device(row)
    return first if is_widened and _asks(queries, queries.op_site(first)) else -1


def _name(habit: Habit, row: int) -> str:
    """Return the recorded name of a tensor, or of what it was cast from: a model's parameter before; else its code."""
    queries, name = habit.queries, ""
    while row >= 0 and not name:
        base = queries.base(row)
        name, row = name_of(queries, base), queries.source(base)
    cast = owner_of(habit.found.node) if habit.found is not None else None
    return name or (brief(habit.found.source.segment(cast)) if habit.found and cast else "")
