"""Casts that a line makes in each step for nothing: there and back again, or of the same tensor each time.

h = h.float()                   # nothing computes in float32 before
h = h.to(torch.bfloat16)        # this: both can go
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from devtrace.costs.cost_findings import Needless
from devtrace.costs.edits_of_copies import move_above_loop
from devtrace.costs.repeated_costs import Habit, habits
from devtrace.costs.steps import FEWEST
from devtrace.costs.writes import are_written
from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.finding_parts import as_culprit
from devtrace.diagnosis.evidence.moves import name_of
from devtrace.diagnosis.evidence.source_text import brief
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.diagnosis.findings import Edit
from devtrace.diagnosis.ledger import Tally, casts, counted
from devtrace.source.element_types import is_cast
from devtrace.source.matching import assigned_names, called_name, match_code, owner_of, variable
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
    help, edits = sentence("dtype-cost.back.help", site=site), _without_both(habit, back)
    return Needless(some, why, help, culprit, edits, severity="note")


def _without_both(habit: Habit, back: Mapping[int, int]) -> tuple[Edit, ...]:
    """Return the edits that leave out both casts, where nothing else has the tensor between them or writes to it later.

    Without them it is the tensor itself, which may be written to elsewhere.
    """
    queries, firsts = habit.queries, set(back.values())
    sites, is_cast_ahead = queries.trace.ops.ints("site"), queries.is_kind("copy") & ~queries.is_phase("backward")
    last, first = (queries.own_node(int(sites[op])) for op in next(iter(back.items())))
    alike = [set(np.flatnonzero(is_cast_ahead & np.isin(sites, sites[list(ops)])).tolist()) for ops in (firsts, back)]
    kept = {queries.base(row) for op in firsts for row in queries.inputs(op)}
    kept |= {queries.base(queries.outputs(op)[0]) for op in back}
    is_all = alike == [firsts, set(back)] and _uses(queries, firsts) <= set(back)
    if first is None or last is None or not is_all or are_written(queries, kept, min(firsts)):
        return ()
    within = first.node if first.statement is last.statement else None
    edits = (_without(last, within), *([_without(first, None)] if within is None else ()))
    return tuple(each for each in edits if each is not None) if None not in edits else ()


def _uses(queries: TraceQueries, made_by: set[int]) -> set[int]:
    """Return the ops that take what these made, or a view of it."""
    inputs, made = queries.trace.ops.lists("inputs"), {queries.base(queries.outputs(op)[0]) for op in made_by}
    by = inputs.rows[np.isin(queries.bases[inputs.flat], list(made))]
    return set(by[~queries.is_kind("view")[by]].tolist())


def _without(found: SourceNode, within: ast.AST | None) -> Edit | None:
    """Return the edit that leaves out a cast, `x` of `x.float()`, and so the one within it."""
    call, code = _cast(found.node), found.code
    inner = _cast(within) if within is not None else None
    if call is None or (within is not None and inner is None):
        return None
    is_whole = getattr(found.statement, "value", None) is found.node
    if within is None and is_whole and assigned_names(*getattr(found.statement, "targets", ())) == [variable(call)]:
        return code.removed(found.statement)
    text = code.text_with(call, (within, _kept(code, inner))) if within is not None and inner is not None else ""
    return code.replaced(found.node, text or _kept(code, call))


def _kept(code: Code, cast: ast.expr) -> str:
    return code.called_on(cast, "").removesuffix(".")


def _cast(node: ast.AST) -> ast.expr | None:
    """Return what a method casts, and nothing but that: not `x.to(device, dtype)`."""
    found = match_code("$x.$cast()", node) or match_code("$x.$cast($dtype)", node)
    return found["x"] if found is not None else None


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
