"""What one thread has recorded: flat lists of integers, packed into arrays as they fill.

An op is seven integers in `heads` and the rows of its inputs (and, if it has several, outputs) in `flat`. Appending
to a list is the cheapest thing that Python does (42 ns for seven; an array takes 220); packing them costs 11 ns an
integer and leaves 52 bytes an op.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

WIDTH: Final = 7
FULL: Final = 4096 * WIDTH

# The five low bits of a head, then the number of inputs, then the class of the autograd node, then the plan.
BACKWARD: Final = 1
OPTIMIZER: Final = 2
GRAD: Final = 4
SEVERAL: Final = 8
MASK: Final = 16
COUNT_SHIFT: Final = 5
NODE_SHIFT: Final = 25
NODES: Final = 1 << 12
COUNTS: Final = 1 << 20

UNKNOWN: Final = -2
THREAD_SHIFT: Final = 40
"""An op is known as (thread << 40 | its number in the thread) until the threads are merged."""

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Packed ops of one thread, in order. `duration` is -1 for an op that raised; `sequence` is autograd's number
    (-1: none).
    """

    head: Array
    site: Array
    start: Array
    duration: Array
    sequence: Array
    row: Array
    layout: Array
    flat: Array

    @classmethod
    def of(cls, heads: list[int], flat: list[int]) -> Chunk:
        table = np.array(heads, dtype=np.int64).reshape(-1, WIDTH)
        head, site, start, end, sequence, row, layout = (table[:, column] for column in range(WIDTH))
        small = np.int32
        return cls(
            head.copy(),
            site.astype(small),
            start.copy(),
            np.where(end < 0, -1, end - start),
            sequence.astype(small),
            row.astype(small),
            layout.astype(small),
            np.array(flat, dtype=small),
        )


class ThreadState:
    """The recorder's hand in one thread."""

    __slots__ = (
        "base",
        "call",
        "calls",
        "chunks",
        "fixed",
        "flat",
        "heads",
        "ident",
        "index",
        "name",
        "op",
        "outers",
        "outside",
        "phase",
        "sequence",
        "task",
        "task_site",
    )

    def __init__(self, index: int, ident: int, name: str, base: int, sequence: int) -> None:
        self.index = index
        self.ident = ident
        self.name = name
        self.base = base  # the site where the thread was started, for ops with no user frame below them
        self.heads: list[int] = []
        self.flat: list[int] = []
        self.chunks: list[Chunk] = []
        self.op = index << THREAD_SHIFT
        self.call = -1
        self.calls = array("q")  # module row, parent, begin, end, training
        self.outers: list[int] = []  # for each open call the site of whoever called, UNKNOWN until asked for
        self.outside: Callable[[FrameType], int] = self.outer
        self.fixed = -1  # the site of all ops for now: inside an optimizer's own code
        self.phase = 0
        self.sequence = sequence
        self.task = -1
        self.task_site = -1

    def outer(self, frame: FrameType) -> int:
        """The site of the innermost open call, whose wrapper `frame` is: it stands still while the call is open."""
        return self._outer(frame, len(self.outers) - 1)

    def _outer(self, frame: FrameType, depth: int) -> int:
        from devtrace.record.sites import find

        if depth < 0:
            return self.base
        site = self.outers[depth]
        if site == UNKNOWN:
            site = self.outers[depth] = find(frame.f_back, lambda inner: self._outer(inner, depth - 1), self.base)
        return site

    def open(self, module_row: int, *, training: bool) -> int:
        """A module's call begins."""
        parent = self.call
        self.call = len(self.calls) // 5
        self.calls.extend((module_row, parent, self.op, -1, training))
        self.outers.append(UNKNOWN)
        return parent

    def close(self, parent: int) -> None:
        self.calls[self.call * 5 + 3] = self.op
        self.call = parent
        self.outers.pop()

    def pack(self) -> None:
        """Turn the full lists into arrays."""
        heads, flat = self.heads, self.flat
        self.heads, self.flat = [], []
        if heads:
            self.chunks.append(Chunk.of(heads, flat))
