"""How far a recording is, while it runs: read from another thread out of what the recorder keeps anyway.

The recording pays nothing: its chunks are immutable, and the lists being filled are copied, which the interpreter does
in one piece. Where a copy falls into the middle of an op, that op is counted at the next look.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from devtrace.record.recorder import Recorder
from devtrace.record.state import COUNT_SHIFT, COUNTS, SEVERAL, THREAD_SHIFT, Chunk, ThreadState

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
        self._rows = recorder.rows
        self._met = 0
        self._layout_of = np.full(0, -1, dtype=np.int32)  # by row

    def learn(self) -> None:
        """Take in what was met since."""
        met = self._rows.told[self._met :]
        self._met += len(met)
        if met:
            table = np.array(met, dtype=np.int64)
            self._know(table[:, 0], table[:, 1])

    def _know(self, rows: Array, layouts: Array) -> None:
        if len(rows) and (most := int(rows.max())) >= len(self._layout_of):
            room = np.full(2 * most + 1024 - len(self._layout_of), -1, dtype=np.int32)
            self._layout_of = np.append(self._layout_of, room)
        self._layout_of[rows] = layouts

    def of(self, chunk: Chunk) -> Array:
        """The layout of each op: of its first output, else of its first input; -1 where it is not known yet."""
        several = (chunk.head & SEVERAL) > 0
        new = ~several & (chunk.layout >= 0)
        self._know(chunk.row[new], chunk.layout[new])
        taken = (chunk.head >> COUNT_SHIFT) & (COUNTS - 1)
        given = np.where(several, chunk.layout, 0)
        begins = np.cumsum(taken + given) - taken - given
        at = np.minimum(begins + np.where(given > 0, taken, 0), max(len(chunk.flat) - 1, 0))
        listed = chunk.flat[at] if len(chunk.flat) else np.full(len(at), -1)
        rows = np.where(several, np.where(taken + given > 0, listed, -1), chunk.row)
        inside = (rows >= 0) & (rows < len(self._layout_of))
        homes = np.full(len(rows), -1, dtype=np.int32)
        homes[inside] = self._layout_of[rows[inside]]
        return homes


class Counter:
    """Looks at one recorder, again and again; each packed chunk is read once."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._homes = Homes(recorder)
        self._read: dict[int, int] = {}  # of each thread how many chunks were read
        self._bytes: list[int] = []  # by layout
        self._ops: Array = np.zeros(0, dtype=np.int64)  # by layout
        self._made: Array = np.zeros(0, dtype=np.int64)

    def look(self) -> Counts:
        recorder = self._recorder
        states = list(recorder.threads)
        self._know_layouts()
        self._homes.learn()
        for state in states:
            packed = state.chunks[self._read.get(state.index, 0) :]
            self._read[state.index] = self._read.get(state.index, 0) + len(packed)
            for chunk in packed:
                ops, made = self._count(chunk)
                self._ops, self._made = self._ops + ops, self._made + made
        ops, made = self._ops, self._made
        for state in states:
            tail = unpacked(state)
            if tail is not None:
                more = self._count(tail)
                ops, made = ops + more[0], made + more[1]
        copies = list(recorder.copies)
        return Counts(
            ops=sum(state.op & ((1 << THREAD_SHIFT) - 1) for state in states),
            copies=len(copies),
            copied=sum(self._bytes[copy.source] for copy in copies if copy.source < len(self._bytes)),
            devices=self._by_device(ops, made),
        )

    def _know_layouts(self) -> None:
        layouts = self._recorder.rows.layouts
        for shape, dtype, _ in layouts[len(self._bytes) :]:
            self._bytes.append(_bytes(shape, dtype))
        missing = len(self._bytes) - len(self._ops)
        if missing:
            self._ops = np.append(self._ops, np.zeros(missing, dtype=np.int64))
            self._made = np.append(self._made, np.zeros(missing, dtype=np.int64))

    def _count(self, chunk: Chunk) -> tuple[Array, Array]:
        """Ops and bytes made of each layout."""
        layouts = self._homes.of(chunk)
        new = ((chunk.head & SEVERAL) == 0) & (chunk.layout >= 0)
        size = len(self._ops)
        ops = np.bincount(layouts[(layouts >= 0) & (layouts < size)], minlength=size)
        made = np.bincount(chunk.layout[new & (chunk.layout < size)], minlength=size)
        return ops, made

    def _by_device(self, ops: Array, made: Array) -> dict[str, tuple[int, int]]:
        found: dict[str, tuple[int, int]] = {}
        for layout in np.flatnonzero((ops > 0) | (made > 0)).tolist():
            device = str(self._recorder.rows.layouts[layout][2])
            before = found.get(device, (0, 0))
            found[device] = before[0] + int(ops[layout]), before[1] + int(made[layout]) * self._bytes[layout]
        return found


def unpacked(state: ThreadState) -> Chunk | None:
    """The ops that are not packed yet; None where they were packed while we looked."""
    heads, flat = state.heads, state.flat
    head_copy, flat_copy = heads[:], flat[:]
    return Chunk.of(head_copy, flat_copy) if head_copy and state.heads is heads and state.flat is flat else None


def _bytes(shape: Any, dtype: Any) -> int:
    try:
        return prod(map(int, shape)) * int(dtype.itemsize)
    except Exception:  # noqa: BLE001 (a nested tensor has no shape of numbers)
        return 0
