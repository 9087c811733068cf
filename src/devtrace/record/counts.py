"""How far a recording is, while it runs: read from another thread out of what the recorder keeps anyway.

The recording pays nothing: its chunks are immutable, and the lists being filled are copied, which the interpreter does
in one piece. Where a copy falls into the middle of an op, that op is counted at the next look.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from devtrace.record.chunk import Chunk
from devtrace.record.recorder import Recorder
from devtrace.record.rows import size_of
from devtrace.record.state import NUMBERS, ThreadState

Array = npt.NDArray[Any]


@dataclass(slots=True)
class Counts:
    """Ops so far, and by device: ops that ran there and bytes that were made there."""

    ops: int
    copies: int
    copied: int
    devices: dict[str, tuple[int, int]]


class Homes:
    """Knows the layout (shape, dtype, device) of every row of a recorder, and so of its ops."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._folds = 0
        self._told = 0
        self._layout_of = np.full(0, -1, dtype=np.int32)  # by row

    def learn(self) -> None:
        """Take in what was told since."""
        if self._recorder.folds != self._folds:
            self._folds, self._told = self._recorder.folds, 0
        told = self._recorder.rows.all_told()[self._told :]
        self._told += len(told)
        self._know(told[:, 0], told[:, 1])

    def _know(self, rows: Array, layouts: Array) -> None:
        if len(rows) and (most := int(rows.max())) >= len(self._layout_of):
            room = np.full(2 * most + 1024 - len(self._layout_of), -1, dtype=np.int32)
            self._layout_of = np.append(self._layout_of, room)
        self._layout_of[rows] = layouts

    def of(self, chunk: Chunk) -> Array:
        """The layout of each op: of its first output, else of its first input; -1 where it is not known yet."""
        self._know(chunk.row[chunk.new], chunk.layout[chunk.new])
        rows = chunk.first_rows()
        inside = (rows >= 0) & (rows < len(self._layout_of))
        homes = np.full(len(rows), -1, dtype=np.int32)
        homes[inside] = self._layout_of[rows[inside]]
        return homes


class Counter:
    """Looks at one recorder, again and again; each op is read once, but all again after a fold."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._homes = Homes(recorder)
        self._bytes: list[int] = []  # by layout
        self._forget()

    def _forget(self) -> None:
        self._folds = self._recorder.folds
        self._read: dict[int, int] = {}  # of each thread how many packed ops were read
        self._ops: Array = np.zeros(len(self._bytes), dtype=np.int64)  # by layout
        self._made: Array = np.zeros(len(self._bytes), dtype=np.int64)

    def look(self) -> Counts:
        recorder = self._recorder
        if recorder.folds != self._folds:
            self._forget()
        states = list(recorder.threads)
        self._know_layouts()
        self._homes.learn()
        for state in states:
            for chunk in packed(state, self._read.get(state.index, 0)):
                ops, made = self._count(chunk)
                self._ops, self._made = self._ops + ops, self._made + made
                self._read[state.index] = int(chunk.number[-1]) + 1
        ops, made = self._ops, self._made
        for state in states:
            tail = unpacked(state)
            if tail is not None:
                more = self._count(tail)
                ops, made = ops + more[0], made + more[1]
        copies = [copied for copied in list(recorder.copies) if copied.source < len(self._bytes)]
        return Counts(
            ops=sum(state.op & NUMBERS for state in states),
            copies=sum(copied.times for copied in copies),
            copied=sum(self._bytes[copied.source] + copied.more for copied in copies),
            devices=self._by_device(ops, made),
        )

    def _know_layouts(self) -> None:
        layouts = self._recorder.rows.layouts
        self._bytes += [size_of(layout) for layout in layouts[len(self._bytes) :]]
        missing = len(self._bytes) - len(self._ops)
        if missing:
            self._ops = np.append(self._ops, np.zeros(missing, dtype=np.int64))
            self._made = np.append(self._made, np.zeros(missing, dtype=np.int64))

    def _count(self, chunk: Chunk) -> tuple[Array, Array]:
        """Ops and bytes made of each layout."""
        layouts = self._homes.of(chunk)
        size = len(self._ops)
        counted = (layouts >= 0) & (layouts < size)
        made = chunk.new & (chunk.layout < size)
        return (
            np.bincount(layouts[counted], chunk.times[counted], minlength=size).astype(np.int64),
            np.bincount(chunk.layout[made], chunk.times[made], minlength=size).astype(np.int64),
        )

    def _by_device(self, ops: Array, made: Array) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for layout in np.flatnonzero((ops > 0) | (made > 0)).tolist():
            device = str(self._recorder.rows.layouts[layout][2])
            before = found.get(device, (0, 0))
            found[device] = before[0] + int(ops[layout]), before[1] + int(made[layout]) * self._bytes[layout]
        return found


def packed(state: ThreadState, first: int) -> list[Chunk]:
    """The packed ops of a thread from a number on."""
    found = []
    for chunk in list(state.chunks):
        later = chunk.number >= first
        if later.all():
            found.append(chunk)
        elif later.any():
            found.append(chunk.select(later, chunk.times[later]))
    return found


def unpacked(state: ThreadState) -> Chunk | None:
    """The ops that are not packed yet; None where they were packed while we looked."""
    first, heads, flat = state.packed, state.heads, state.flat
    head_copy, flat_copy = heads[:], flat[:]
    return Chunk.of(head_copy, flat_copy, first) if head_copy and state.heads is heads and state.flat is flat else None
