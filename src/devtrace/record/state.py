"""What one thread has recorded: flat lists of integers, packed into arrays as they fill.

An op is seven integers in `heads` and the rows of its inputs (and, if it has several, outputs) in `flat`. Appending
to a list is the cheapest thing that Python does (42 ns for seven; an array takes 220); packing them costs 11 ns an
integer and leaves 52 bytes an op.
"""

from __future__ import annotations

import sys
from array import array
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from torch._C import _current_graph_task_id as current_task
from torch._C._autograd import _get_sequence_nr as sequence_number
from torch.autograd.graph import _engine_run_backward

from devtrace.record import sites
from devtrace.record.sites import USER, files, known

WIDTH: Final = 7
FULL: Final = 4096 * WIDTH

# The five low bits of a head, then the number of inputs, then the class of the autograd node, then the plan.
BACKWARD: Final = 1
OPTIMIZER: Final = 2
GRAD: Final = 4
GRAD_SHIFT: Final = 2
SEVERAL: Final = 8
MASK: Final = 16
COUNT_SHIFT: Final = 5
NODE_SHIFT: Final = 25
NODES: Final = 1 << 12
COUNTS: Final = 1 << 20

NO_NUMBER: Final = 1 << 31
"""Autograd's numbers are below; AccumulateGrad, which has none, answers the highest of 64 bits."""
UNKNOWN: Final = -2
THREAD_SHIFT: Final = 40
"""An op is known as (thread << 40 | its number in the thread) until the threads are merged."""

_ENGINE: Final = _engine_run_backward.__code__

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
        "mode",
        "name",
        "number",
        "op",
        "outers",
        "parent",
        "phase",
        "task",
        "task_site",
    )

    def __init__(self, index: int, ident: int, name: str, base: int, parent: int) -> None:
        self.index = index
        self.ident = ident
        self.name = name
        self.base = base  # the site where the thread was started, for ops with no user frame below them
        self.parent = parent  # the module in whose call it was started, -1 for none
        self.heads: list[int] = []
        self.flat: list[int] = []
        self.chunks: list[Chunk] = []
        self.op = index << THREAD_SHIFT
        self.call = -1
        self.calls = array("q")  # module row, parent, begin, end, training
        self.outers: list[int] = []  # for each open call the site of whoever called, UNKNOWN until asked for
        self.fixed = -1  # the site of all ops for now: inside an optimizer's own code
        self.phase = 0
        self.number = sequence_number()  # autograd's counter in this thread after the last op
        self.task = -1
        self.task_site = -1
        self.mode: Any = None  # the dispatch mode that records into this

    def where(self, frame: Any) -> int:
        """The site of an op below whose frame no site is fixed."""
        try:
            while not (kind := files[frame.f_code.co_filename]):
                frame = frame.f_back
            if kind == USER:
                return known[id(frame.f_code)][frame.f_lasti]
        except (AttributeError, KeyError):  # no frame, or not yet known
            pass
        return self.find(frame)

    def find(self, frame: FrameType | None) -> int:
        """The site of a frame or of the nearest one around it."""
        return sites.find(frame, self.outer, self.base)

    def backward(self, node: Any, head: int, nodes: dict[type, int]) -> tuple[int, int, int]:
        """Head, site and number of an op of the backward pass.

        Until its forward op is found it is where backward was called. Python code that runs in the pass (a hook, a
        Function's `backward`, what checkpoint computes again) has lines of its own.
        """
        kind = type(node)
        head |= BACKWARD | nodes.setdefault(kind, min(len(nodes), NODES - 1)) << NODE_SHIFT
        caller = sys._getframe(1).f_back
        if caller is not None and caller.f_code is not _ENGINE:
            return head, self.where(caller), -1
        task = current_task()
        if task != self.task:
            self.task = task
            self.task_site = self.find(caller)
            self.phase, self.fixed = 0, -1
        number = node._sequence_nr()
        return head, self.task_site, number if number < NO_NUMBER else -1

    def outer(self, frame: FrameType) -> int:
        """The site of the innermost open call, whose wrapper `frame` is: it stands still while the call is open."""
        return self._outer(frame, len(self.outers) - 1)

    def _outer(self, frame: FrameType, depth: int) -> int:
        if depth < 0:
            return self.base
        site = self.outers[depth]
        if site == UNKNOWN:
            site = self.outers[depth] = sites.find(frame.f_back, lambda inner: self._outer(inner, depth - 1), self.base)
        return site

    @property
    def module(self) -> int:
        """The module whose call this thread is in, -1 for none."""
        return self.calls[self.call * 5] if self.call >= 0 else -1

    def open(self, module_row: int, caller: FrameType | None, *, training: bool, plain: bool) -> tuple[int, int, int]:
        """A module's call begins. All ops of a plain one are at the line that called it; returns what `close` needs."""
        before = self.call, self.fixed, self.phase
        if not plain:
            self.fixed = -1
        elif self.fixed < 0:
            self.fixed = self.where(caller)
        self.call = len(self.calls) // 5
        self.calls.extend((module_row, before[0], self.op, -1, training))
        self.outers.append(self.fixed if self.fixed >= 0 else UNKNOWN)
        self.phase = 0
        return before

    def close(self, before: tuple[int, int, int]) -> None:
        self.calls[self.call * 5 + 3] = self.op
        self.call, self.fixed, self.phase = before
        self.outers.pop()

    def reopen(self, module_row: int, parent: int) -> int:
        """Let a call that has ended, the last one of a module in `parent`, hold the op that comes next."""
        for call in reversed(range(len(self.calls) // 5)):
            row, above, _, end, _ = self.calls[call * 5 : call * 5 + 5]
            if (row, above, end) == (module_row, parent, self.op):
                self.calls[call * 5 + 3] = self.op + 1
                return call
        return parent

    def pack(self) -> None:
        """Turn the full lists into arrays."""
        heads, flat = self.heads, self.flat
        self.heads, self.flat = [], []
        if heads:
            self.chunks.append(Chunk.of(heads, flat))
