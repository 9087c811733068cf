"""How far a recording is, while it runs: read from another thread out of what the recorder keeps anyway.

The recording pays nothing: its chunks are immutable, and of the lists being filled what is new is copied, which the
interpreter does in one piece. How many ops are complete is asked first; what comes while we look is for the next look.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from devtrace.recording.columns.chunk import WIDTH, Chunk
from devtrace.recording.columns.tensor_rows import size_of
from devtrace.recording.columns.thread_state import NUMBERS, ThreadState
from devtrace.recording.hot.recorder import Recorder

Array = npt.NDArray[Any]


@dataclass(slots=True)
class Counts:
    """Ops so far, and by device: ops that ran there and bytes that were made there."""

    ops: int
    copies: int
    copied: int
    devices: dict[str, tuple[int, int]]


class Reader:
    """Reads the ops of one recorder as they come, each once."""

    def __init__(self) -> None:
        self._read: dict[int, int] = {}  # of each thread how many ops
        # Of each thread's lists: how many ops were packed before them, how many of theirs and of `flat` were read.
        self._lists: dict[int, tuple[int, int, int]] = {}

    def new(self, state: ThreadState, limit: int) -> list[Chunk]:
        """The ops of a thread that were not read yet, up to the one with the number `limit`."""
        tail = self._tail(state, limit)
        chunks = _packed(state, self._read.get(state.index, 0), limit)
        if tail is not None:
            chunks.append(tail)
        if chunks:
            self._read[state.index] = int(chunks[-1].number[-1]) + 1
        return chunks

    def _tail(self, state: ThreadState, limit: int) -> Chunk | None:
        """What is new in the thread's lists; None where they were packed while we looked."""
        base, heads, flat = state.packed, state.heads, state.flat
        known, done, begin = self._lists.get(state.index, (base, 0, 0))
        if known != base:
            done = begin = 0
        ops = min(limit - base, len(heads) // WIDTH)
        if ops <= done:
            return None
        table, rows = heads[done * WIDTH : ops * WIDTH], flat[begin:]
        if state.heads is not heads or state.packed != base:
            return None
        chunk = Chunk.of(table, rows, base + done)
        used = int((chunk.taken + chunk.given).sum())
        self._lists[state.index] = (base, ops, begin + used)
        return replace(chunk, flat=chunk.flat[:used])


def _packed(state: ThreadState, first: int, limit: int) -> list[Chunk]:
    """The packed ops of a thread with first <= number < limit."""
    found = []
    for chunk in list(state.chunks):
        if len(chunk) and chunk.number[-1] >= first and chunk.number[0] < limit:
            wanted = (chunk.number >= first) & (chunk.number < limit)
            if wanted.any():
                found.append(chunk if wanted.all() else chunk.select(wanted, chunk.times[wanted]))
    return found


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
        told = self._recorder.rows.told_since(self._told)
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
        self._reader = Reader()
        self._copies = self._copied = self._copies_read = 0
        self._ops: Array = np.zeros(len(self._bytes), dtype=np.int64)  # by layout
        self._made: Array = np.zeros(len(self._bytes), dtype=np.int64)

    def look(self) -> Counts:
        recorder = self._recorder
        if recorder.folds != self._folds:
            self._forget()
        limits = [(state, state.op & NUMBERS) for state in list(recorder.threads)]
        copies = recorder.copies[self._copies_read :]
        self._know_layouts()
        self._homes.learn()
        for state, limit in limits:
            for chunk in self._reader.new(state, limit):
                self._count(chunk)
        self._copies_read += len(copies)
        self._copies += sum(copied.times for copied in copies)
        self._copied += sum(self._bytes[copied.source] + copied.more for copied in copies)
        ops = sum(limit for _, limit in limits)
        return Counts(ops, self._copies, self._copied, self._by_device(self._ops, self._made))

    def _know_layouts(self) -> None:
        layouts = self._recorder.rows.layouts
        self._bytes += [size_of(layout) for layout in layouts[len(self._bytes) :]]
        missing = len(self._bytes) - len(self._ops)
        if missing:
            self._ops = np.append(self._ops, np.zeros(missing, dtype=np.int64))
            self._made = np.append(self._made, np.zeros(missing, dtype=np.int64))

    def _count(self, chunk: Chunk) -> None:
        """Add ops and bytes made of each layout."""
        layouts = self._homes.of(chunk)
        size = len(self._ops)
        counted = (layouts >= 0) & (layouts < size)
        made = chunk.new & (chunk.layout < size)
        self._ops += np.bincount(layouts[counted], chunk.times[counted], minlength=size).astype(np.int64)
        self._made += np.bincount(chunk.layout[made], chunk.times[made], minlength=size).astype(np.int64)

    def _by_device(self, ops: Array, made: Array) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for layout in np.flatnonzero((ops > 0) | (made > 0)).tolist():
            device = str(self._recorder.rows.layouts[layout][2])
            before = found.get(device, (0, 0))
            found[device] = before[0] + int(ops[layout]), before[1] + int(made[layout]) * self._bytes[layout]
        return found
