"""Where a value came from and where it goes: by the ops of the trace, between one step and the next.

share = edges / edges.sum(1)        # made in each step, of what was there before
x = share.to(device) @ x
"""

import ast
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

import numpy as np

from devtrace.diagnosis.evidence.origins import FROM_DATA
from devtrace.diagnosis.evidence.trace_queries import NOWHERE, TraceQueries
from devtrace.source.matching import names_in
from devtrace.source.vocabulary import DRAWS, FILLS, TAKES_VALUES, full_name
from devtrace.trace.ids import NO_OP, NO_TENSOR, OpId, TensorId
from devtrace.trace.tables import Ints
from devtrace.words.text_format import short_op_name

ANCESTORS: Final = 40
MOST: Final = 12
"""Tensors that one is made of in a step, or that lead from what is drawn to what it is added to."""
_FILLED: Final = 3  # times that it is filled in part
_CONSTANT: Final = frozenset(("fill_", "zero_"))
_OF_LISTS: Final = ("aten._foreach_", "aten._fused_")


def op_of(queries: TraceQueries, op: OpId) -> str:
    """Return the name of an op without its package and overload: `add_` of `aten.add_.Tensor`."""
    return short_op_name(queries.op_name(op))


def is_on_host(queries: TraceQueries, op: OpId) -> bool:
    return queries.trace.ops.number("device", op) == queries.host


def first_input(queries: TraceQueries, op: OpId) -> TensorId:
    return next(iter(queries.inputs(op)), NO_TENSOR)


# Forward.


def takers_after(
    queries: TraceQueries, op: OpId, goes_on: Callable[[OpId], bool], end: int | None = None
) -> Iterator[OpId]:
    """Yield the ops that take what an op gave, or what such of them gave in turn through which it `goes_on`."""
    rows = list(queries.outputs(op))
    for row in rows:
        for taker in queries.takers(row):
            if op < taker and (end is None or taker < end):
                yield taker
                rows += [each for each in queries.outputs(taker) if each not in rows] if goes_on(taker) else []


# Backward.


@dataclass
class Made:
    """Ops by which a step made tensors, with all that these gave, and the tensors that were there before."""

    ops: list[OpId] = field(default_factory=list)
    new: list[TensorId] = field(default_factory=list)
    old: list[TensorId] = field(default_factory=list)
    sources: list[OpId] = field(default_factory=list)
    """Ops that took nothing, or only drew from old tensors."""
    is_whole: bool = True
    """False where more ops made it than are looked at."""

    @classmethod
    def of(cls, queries: TraceQueries, rows: Collection[TensorId], since: OpId) -> "Made":
        """Return what rows are made of by ops after `since`."""
        made, queue = cls(), list(rows)
        for row in queue:
            maker = queries.producer(row)
            if maker <= since:
                made.old.append(row)
                continue
            made.ops.append(maker)
            made.new.append(row)
            made.is_whole &= len(queue) <= MOST
            taken = queries.inputs(maker) if made.is_whole else []
            if op_of(queries, maker) in DRAWS and all(queries.producer(each) < since for each in taken):
                taken = []
            made.sources += [maker] if not taken else []
            queue += [each for each in taken if each not in queue]
        return made


def factories_of(
    queries: TraceQueries, rows: Collection[TensorId], op: OpId, since: OpId, device: int | None = None
) -> list[OpId]:
    """Return the factories' ops that inputs of an op come from alone, none of them before `since`; else nothing.

    All of it was made on the device, if one is given. What fills it in part are constants: `mask[:2] = 0`.
    """
    made = Made.of(queries, rows, since)
    are_data = (part in queries.op_name(each) for part in FROM_DATA for each in made.sources)
    are_made = (queries.kind(each) == "create" or op_of(queries, each) in DRAWS for each in made.sources)
    if made.old or not made.is_whole or any(are_data) or not all(are_made):
        return []
    if device is not None and any(queries.trace.ops.number("device", each) != device for each in made.ops):
        return []
    filled = [_fillings(queries, queries.base(row), maker, op) for row, maker in zip(made.new, made.ops, strict=True)]
    return [*made.sources, *chain(*filter(None, filled))] if None not in filled else []


def _fillings(queries: TraceQueries, base: TensorId, maker: OpId, op: OpId) -> list[OpId] | None:
    """Return the ops that fill a tensor or a part with constants; None if something else writes."""
    found: list[OpId] = []
    at = maker
    while (at := first_write(queries, [base], at, op)) >= 0:
        code = queries.op_node(at)
        if code is NOWHERE or len(found) == _FILLED or op_of(queries, at) not in FILLS:
            return None
        given = getattr(code.node, "args", [getattr(code.statement, "value", code.node)])
        if any(not full_name(ast.Name(name), code.source) for name in names_in(*given) - TAKES_VALUES):
            return None
        found.append(at)
    return found


def are_drawn(queries: TraceQueries, ops: Collection[OpId]) -> bool:
    """Return whether one of some ops draws at random."""
    names = {op_of(queries, op) for op in ops}
    return any(name in DRAWS | FILLS - _CONSTANT or name.startswith("rand") for name in names)


def is_trained(queries: TraceQueries, op: OpId) -> bool:
    """Return whether what an op carried or read is of the work that a backward pass differentiates."""
    if queries.trace.ops.raw("phase", op) in ("backward", "optimizer"):
        return False
    forward = queries.trace.ops.ints("forward")
    rows = chain.from_iterable(queries.ancestors(row, ANCESTORS) for row in queries.carried(op))
    made = [queries.producer(row) for row in rows if not queries.is_of_a_module(queries.base(row))]
    return bool(np.isin(forward[forward >= 0], [each for each in made if each >= 0]).any())


# Writes to the memory of tensors that were there before.


def are_written(queries: TraceQueries, bases: Collection[TensorId], first: OpId, last: OpId | None = None) -> bool:
    """Return whether an op after `first`, up to `last`, writes to one of these tensors."""
    return first_write(queries, bases, first, last) >= 0


def first_write(queries: TraceQueries, bases: Collection[TensorId], first: OpId, last: OpId | None = None) -> OpId:
    """Return the first op that writes to one of these tensors or a part of it, else -1. A view writes nothing.

    An optimizer's ops on lists have no outputs: they write to what they take.
    """
    end = len(queries.trace.ops) if last is None else last + 1
    by, rows = _with_rows(queries, "outputs", bases, first, end)
    found = by[~queries.is_kind("view")[by] & (queries.producers[rows] < by)]
    if not len(found):
        names = [
            id for text, id in queries.strings.items() if text.startswith(_OF_LISTS) and text.split(".")[1][-1] == "_"
        ]
        by, _ = _with_rows(queries, "inputs", bases, first, end)
        found = by[np.isin(queries.trace.ops.ints("name")[by], names)]
    return OpId(int(found[0])) if len(found) else NO_OP


def _with_rows(
    queries: TraceQueries, column: str, bases: Collection[TensorId], first: OpId, end: int
) -> tuple[Ints, Ints]:
    """Return the ops between two that have one of these tensors, or a part of it, in a column, each with that."""
    lists = queries.trace.ops.lists(column)
    rows = lists.flat[lists.offsets[first + 1] : lists.offsets[end]]
    chosen = np.isin(queries.bases[rows], list(bases))
    by = np.repeat(np.arange(first + 1, end), lists.lengths[first + 1 : end])
    return by[chosen], rows[chosen]
