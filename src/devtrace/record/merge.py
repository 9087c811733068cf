"""The ops of all threads as one set of columns, in order of start: plain arrays, no torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from devtrace.record.state import (
    BACKWARD,
    COUNT_SHIFT,
    COUNTS,
    GRAD,
    MASK,
    NODE_SHIFT,
    NODES,
    OPTIMIZER,
    SEVERAL,
    THREAD_SHIFT,
    ThreadState,
)

Array = npt.NDArray[Any]
PLAN_SHIFT = NODE_SHIFT + 12


@dataclass(frozen=True, slots=True)
class Merged:
    """Ops in order of start. `inputs` and `outputs` are (offsets, flat rows); `order` gives each op's place from its
    number.
    """

    plan: Array
    node: Array
    backward: Array
    optimizer: Array
    grad: Array
    mask: Array
    site: Array
    start: Array
    duration: Array
    sequence: Array
    thread: Array
    inputs: tuple[Array, Array]
    outputs: tuple[Array, Array]
    new_row: Array  # the row of an only output, -1 when it was there before
    new_layout: Array
    place: Places


class Places:
    """From an op's number in its thread to its id in the trace."""

    def __init__(self, counts: Sequence[int], order: Array) -> None:
        self._bases = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        self._inverse = np.empty(len(order), dtype=np.int64)
        self._inverse[order] = np.arange(len(order))
        self._threads = [np.sort(self._inverse[a:b]) for a, b in zip(self._bases[:-1], self._bases[1:], strict=True)]

    def of(self, numbers: Array) -> Array:
        """Ids of ops; -1 stays -1."""
        if not len(self._inverse):
            return np.full(len(numbers), -1, dtype=np.int64)
        thread, local = numbers >> THREAD_SHIFT, numbers & ((1 << THREAD_SHIFT) - 1)
        at = self._bases[np.maximum(thread, 0)] + np.where(numbers < 0, 0, local)
        return np.where(numbers < 0, -1, self._inverse[np.minimum(at, len(self._inverse) - 1)])

    def boundary(self, thread: int, local: int) -> int:
        """The first id that an op of this thread with this number or a later one has."""
        mine = self._threads[thread]
        return int(mine[local]) if local < len(mine) else (int(mine[-1]) + 1 if len(mine) else 0)


def merge(threads: Sequence[ThreadState], origin: int) -> Merged:
    for state in threads:
        state.pack()
    chunks = [chunk for state in threads for chunk in state.chunks]
    counts = [sum(len(chunk.head) for chunk in state.chunks) for state in threads]

    def column(name: str, kind: Any = np.int64) -> Array:
        return np.concatenate([getattr(chunk, name) for chunk in chunks] or [np.empty(0, kind)])

    head, start, row, layout = column("head"), column("start"), column("row"), column("layout")
    thread = np.repeat(np.arange(len(counts)), counts)
    order = np.argsort(start, kind="stable")
    several = (head & SEVERAL) > 0
    taken = (head >> COUNT_SHIFT) & (COUNTS - 1)
    given = np.where(several, layout, 0)
    new = np.where(several, -1, layout)
    ends = np.cumsum(taken + given)
    begins = ends - taken - given
    flat = column("flat")
    inputs = _gathered(flat, begins[order], taken[order])
    outputs = _outputs(flat, (begins + taken)[order], given[order], np.where(several, -1, row)[order])
    head = head[order]
    return Merged(
        plan=head >> PLAN_SHIFT,
        node=(head >> NODE_SHIFT) & (NODES - 1),
        backward=(head & BACKWARD) > 0,
        optimizer=(head & OPTIMIZER) > 0,
        grad=((head & GRAD) > 0).astype(np.int32),
        mask=(head & MASK) > 0,
        site=column("site")[order],
        start=np.maximum(start[order] - origin, 0),
        duration=column("duration")[order],
        sequence=column("sequence")[order],
        thread=thread[order],
        inputs=inputs,
        outputs=outputs,
        new_row=np.where(new >= 0, row, -1)[order],
        new_layout=new[order],
        place=Places(counts, order),
    )


def _gathered(flat: Array, begins: Array, counts: Array) -> tuple[Array, Array]:
    """The lists flat[begin : begin + count], one after the other."""
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    at = np.repeat(begins - offsets[:-1], counts) + np.arange(offsets[-1])
    return offsets, flat[at]


def _outputs(flat: Array, begins: Array, given: Array, only: Array) -> tuple[Array, Array]:
    """As `_gathered`, and where there is one output it is `only`."""
    counts = np.where(only >= 0, 1, given)
    offsets, rows = _gathered(np.append(flat, -1), begins, counts)
    single = only >= 0
    rows[offsets[:-1][single]] = only[single]
    return offsets, rows
