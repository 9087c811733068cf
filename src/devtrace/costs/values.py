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
"""Most tensors that one is made of in a step, or that lead from what is drawn to what it is added to."""
_MOST_FILLS: Final = 3  # of parts of a tensor
_CONSTANT: Final = frozenset(("fill_", "zero_"))
_OF_LISTS: Final = ("aten._foreach_", "aten._fused_")


def op_of(queries: TraceQueries, op: OpId) -> str:
    """Return the name of an op without its package and overload: `add_` of `aten.add_.Tensor`."""
    return short_op_name(queries.op_name(op))


def is_on_host(queries: TraceQueries, op: OpId) -> bool:
    return queries.trace.ops.number("device", op) == queries.host


def first_input(queries: TraceQueries, op: OpId) -> TensorId:
    return next(iter(queries.inputs(op)), NO_TENSOR)


def takers_after(
    queries: TraceQueries, op: OpId, goes_on: Callable[[OpId], bool], end: int | None = None
) -> Iterator[OpId]:
    """Yield the later ops that take what an op gave, then those that take what a taker with `goes_on(taker)` gave."""
    tensors = list(queries.outputs(op))
    for tensor in tensors:
        for taker in queries.takers(tensor):
            if op < taker and (end is None or taker < end):
                yield taker
                tensors += [each for each in queries.outputs(taker) if each not in tensors] if goes_on(taker) else []


@dataclass
class Made:
    """Ops by which a step made some tensors, all that these ops gave, and the older tensors that they took."""

    ops: list[OpId] = field(default_factory=list)
    new: list[TensorId] = field(default_factory=list)
    old: list[TensorId] = field(default_factory=list)
    sources: list[OpId] = field(default_factory=list)
    """Ops that took nothing, or only drew from old tensors."""
    is_whole: bool = True
    """False where more ops made the tensors than are looked at."""

    @classmethod
    def of(cls, queries: TraceQueries, tensors: Collection[TensorId], since: OpId) -> "Made":
        """Return what tensors are made of by ops after `since`."""
        made, queue = cls(), list(tensors)
        for tensor in queue:
            maker = queries.producer(tensor)
            if maker <= since:
                made.old.append(tensor)
                continue
            made.ops.append(maker)
            made.new.append(tensor)
            made.is_whole &= len(queue) <= MOST
            inputs = queries.inputs(maker) if made.is_whole else []
            if op_of(queries, maker) in DRAWS and all(queries.producer(older) < since for older in inputs):
                inputs = []
            made.sources += [maker] if not inputs else []
            queue += [older for older in inputs if older not in queue]
        return made


def factories_of(
    queries: TraceQueries, tensors: Collection[TensorId], op: OpId, since: OpId, device: int | None = None
) -> list[OpId]:
    """Return the ops of factories that made all of some inputs of an op after `since`; nothing if data is in them.

    All of it was made on the device, if one is given. What fills it in part are constants: `mask[:2] = 0`.
    """
    made = Made.of(queries, tensors, since)
    are_data = (part in queries.op_name(source) for part in FROM_DATA for source in made.sources)
    are_factories = (queries.kind(source) == "create" or op_of(queries, source) in DRAWS for source in made.sources)
    if made.old or not made.is_whole or any(are_data) or not all(are_factories):
        return []
    if device is not None and any(queries.trace.ops.number("device", maker) != device for maker in made.ops):
        return []
    fills = [_fills(queries, queries.base(new), maker, op) for new, maker in zip(made.new, made.ops, strict=True)]
    return [*made.sources, *chain(*filter(None, fills))] if None not in fills else []


def _fills(queries: TraceQueries, base: TensorId, maker: OpId, op: OpId) -> list[OpId] | None:
    """Return the ops that fill a tensor or a part with constants; None if something else writes."""
    fills: list[OpId] = []
    write = maker
    while (write := first_write(queries, [base], write, op)) >= 0:
        place = queries.op_node(write)
        if place is NOWHERE or len(fills) == _MOST_FILLS or op_of(queries, write) not in FILLS:
            return None
        values = getattr(place.node, "args", [getattr(place.statement, "value", place.node)])
        if any(not full_name(ast.Name(name), place.source) for name in names_in(*values) - TAKES_VALUES):
            return None  # a variable is no constant
        fills.append(write)
    return fills


def are_drawn(queries: TraceQueries, ops: Collection[OpId]) -> bool:
    """Return whether one of some ops draws at random."""
    names = {op_of(queries, op) for op in ops}
    return any(name in DRAWS | FILLS - _CONSTANT or name.startswith("rand") for name in names)


def is_trained(queries: TraceQueries, op: OpId) -> bool:
    """Return whether what an op carried or read is of the work that a backward pass differentiates."""
    if queries.trace.ops.raw("phase", op) in ("backward", "optimizer"):
        return False
    forward = queries.trace.ops.ints("forward")
    ancestors = chain.from_iterable(queries.ancestors(tensor, ANCESTORS) for tensor in queries.carried(op))
    makers = [queries.producer(tensor) for tensor in ancestors if not queries.is_of_a_module(queries.base(tensor))]
    return bool(np.isin(forward[forward >= 0], [maker for maker in makers if maker >= 0]).any())


# Writes to the memory of tensors that were there before.


def are_written(queries: TraceQueries, bases: Collection[TensorId], after: OpId, last: OpId | None = None) -> bool:
    """Return whether an op after `after`, up to `last`, writes to one of these tensors."""
    return first_write(queries, bases, after, last) >= 0


def first_write(queries: TraceQueries, bases: Collection[TensorId], after: OpId, last: OpId | None = None) -> OpId:
    """Return the first op behind `after` that writes to one of these tensors or a part, else -1. No view writes.

    An optimizer's ops on lists have no outputs: they write to what they take.
    """
    end = len(queries.trace.ops) if last is None else last + 1
    ops, tensors = _ops_and_tensors(queries, "outputs", bases, after, end)
    writes = ops[~queries.is_kind("view")[ops] & (queries.producers[tensors] < ops)]
    if not len(writes):
        ops_on_lists = ((name, id) for name, id in queries.strings.items() if name.startswith(_OF_LISTS))
        names = [id for name, id in ops_on_lists if name.split(".")[1][-1] == "_"]  # `_foreach_add_` writes
        ops, _ = _ops_and_tensors(queries, "inputs", bases, after, end)
        writes = ops[np.isin(queries.trace.ops.ints("name")[ops], names)]
    return OpId(int(writes[0])) if len(writes) else NO_OP


def _ops_and_tensors(
    queries: TraceQueries, column: str, bases: Collection[TensorId], after: OpId, end: int
) -> tuple[Ints, Ints]:
    """Return the ops after `after` and before `end` whose `column` ("inputs", "outputs") has a tensor of these bases.

    The second array has each op's tensor.
    """
    lists = queries.trace.ops.lists(column)
    tensors = lists.flat[lists.offsets[after + 1] : lists.offsets[end]]
    is_wanted = np.isin(queries.bases[tensors], list(bases))
    ops = np.repeat(np.arange(after + 1, end), lists.lengths[after + 1 : end])
    return ops[is_wanted], tensors[is_wanted]
