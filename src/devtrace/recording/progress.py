"""How far a recording is, while it runs, and its ops as they come: read from another thread out of the recorder's data.

The recording pays nothing. Its chunks are immutable, and of the lists being filled the new part is copied, which the
interpreter does in one piece. A look first asks how many ops are complete; later ones are for the next look.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from devtrace.recording.columns.chunk import BACKWARD, OPTIMIZER, WIDTH, Array, Chunk
from devtrace.recording.columns.operator_info import by_id
from devtrace.recording.columns.tensor_rows import size_of
from devtrace.recording.columns.thread_state import NUMBERS, ThreadState
from devtrace.recording.hot.recorder import Recorder

COLUMNS: Final[dict[str, Any]] = {
    "start": np.float64,
    "duration": np.float64,
    "name": np.uint32,
    "device": np.int16,
    "thread": np.uint16,
    "phase": np.uint8,
}
"""The type of each column."""


@dataclass(slots=True)
class Counts:
    """Ops so far, and by device: ops that ran there and bytes that were made there."""

    ops: int
    copies: int
    copied: int
    devices: dict[str, tuple[int, int]]


class OpReader:
    """Reads the ops of one recorder as they come, each once."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.complete: list[tuple[ThreadState, int]] = []  # threads, with their number of ops
        self._folds = 0
        self._extra = 0
        self._layout_of = np.full(0, -1, dtype=np.int32)  # by row
        self.restart()

    def restart(self) -> None:
        """Let `new` yield all ops again."""
        self._read_ops: dict[int, int] = {}  # of each thread how many ops
        # Of each thread's lists: how many ops were packed before them, how many of theirs and of `flat` were read.
        self._read_of_lists: dict[int, tuple[int, int, int]] = {}

    def begin_look(self) -> None:
        """Let `new` yield the ops that are complete now; learn the extra rows since the last time, all after a fold."""
        self.complete = [(state, state.op & NUMBERS) for state in list(self._recorder.threads)]
        if self._recorder.folds != self._folds:
            self._folds, self._extra = self._recorder.folds, 0
        extra = self._recorder.rows.extra_rows_table(self._extra)
        self._extra += len(extra)
        self._learn_layouts(extra[:, 0], extra[:, 1])

    def _learn_layouts(self, rows: Array, layouts: Array) -> None:
        if len(rows) and (most := int(rows.max())) >= len(self._layout_of):
            room = np.full(2 * most + 1024 - len(self._layout_of), -1, dtype=np.int32)
            self._layout_of = np.append(self._layout_of, room)
        self._layout_of[rows] = layouts

    def new(self) -> Iterator[tuple[ThreadState, Chunk, Array]]:
        """Yield the ops of each thread that were not read yet, with their layouts (shape, dtype, device)."""
        for state, limit in self.complete:
            tail = self._new_in_lists(state, limit)
            chunks = _packed_ops(state, self._read_ops.get(state.index, 0), limit)
            if tail is not None:
                chunks.append(tail)
            if chunks:
                self._read_ops[state.index] = int(chunks[-1].number[-1]) + 1
            for chunk in chunks:
                self._learn_layouts(chunk.row[chunk.adds_row], chunk.layout[chunk.adds_row])
                yield state, chunk, self._layouts_of(chunk.first_rows())

    def _layouts_of(self, rows: Array) -> Array:
        """Return the layout of each row; -1 where it is not known yet."""
        inside = (rows >= 0) & (rows < len(self._layout_of))
        layouts = np.full(len(rows), -1, dtype=np.int32)
        layouts[inside] = self._layout_of[rows[inside]]
        return layouts

    def _new_in_lists(self, state: ThreadState, limit: int) -> Chunk | None:
        """Return the new ops in the thread's lists, None where they were packed in the meantime."""
        packed, heads, flat = state.packed, state.heads, state.flat
        packed_then, ops_read, rows_read = self._read_of_lists.get(state.index, (packed, 0, 0))
        if packed_then != packed:
            ops_read = rows_read = 0
        ops = min(limit - packed, len(heads) // WIDTH)
        if ops <= ops_read:
            return None
        table, rows = heads[ops_read * WIDTH : ops * WIDTH], flat[rows_read:]
        if state.heads is not heads or state.packed != packed:
            return None
        chunk = Chunk.of(table, rows, packed + ops_read)
        row_count = int((chunk.input_count + chunk.output_count).sum())
        self._read_of_lists[state.index] = (packed, ops, rows_read + row_count)
        return replace(chunk, flat=chunk.flat[:row_count])


def _packed_ops(state: ThreadState, first: int, limit: int) -> list[Chunk]:
    """Return the packed ops of a thread with first <= number < limit."""
    chunks = []
    for chunk in list(state.chunks):
        if len(chunk) and chunk.number[-1] >= first and chunk.number[0] < limit:
            is_wanted = (chunk.number >= first) & (chunk.number < limit)
            if is_wanted.any():
                chunks.append(chunk if is_wanted.all() else chunk.select(is_wanted, chunk.times[is_wanted]))
    return chunks


class Counter:
    """Looks at one recorder, again and again: each op is read once, all again after a fold (repeats become one op)."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._reader = OpReader(recorder)
        self._start_again()

    def _start_again(self) -> None:
        self._folds = self._recorder.folds
        self._reader.restart()
        self._copies = self._copied = self._copies_read = 0
        self._devices: dict[str, tuple[int, int]] = {}

    def look(self) -> Counts:
        recorder, table = self._recorder, self._recorder.rows.layouts  # (shape, dtype, device) of each layout
        if recorder.folds != self._folds:
            self._start_again()
        self._reader.begin_look()
        copies = recorder.copies[self._copies_read :]
        for _, chunk, layouts in self._reader.new():
            for layout, times in _by_layout(layouts, chunk.times):
                self._count(table[layout], times, 0)
            for layout, times in _by_layout(np.where(chunk.adds_row, chunk.layout, -1), chunk.times):
                self._count(table[layout], 0, times * size_of(table[layout]))
        self._copies_read += len(copies)
        self._copies += sum(copied.times for copied in copies)
        self._copied += sum(size_of(table[copied.source]) + copied.more for copied in copies)
        ops = sum(limit for _, limit in self._reader.complete)
        return Counts(ops, self._copies, self._copied, dict(self._devices))

    def _count(self, layout: tuple[Any, Any, Any], ops: int, new_bytes: int) -> None:
        known = self._devices.get(str(layout[2]), (0, 0))
        self._devices[str(layout[2])] = known[0] + ops, known[1] + new_bytes


def _by_layout(layouts: Array, times: Array) -> list[tuple[int, int]]:
    """Return how often there is each layout that is known."""
    sums = np.bincount(layouts[layouts >= 0], times[layouts >= 0]).astype(np.int64)
    return [(layout, int(sums[layout])) for layout in np.flatnonzero(sums).tolist()]


@dataclass(frozen=True)
class New:
    """Ops since the last look, by columns, with the names, devices and threads that appear for the first time.

    `start` and `duration` are in ns (duration -1: it raised). `name`, `device` (-1: not known) and `thread` are indexes
    into all names so far. `phase` is 1 in a backward pass, 2 in an optimizer, else 0. Ops of one thread are in order.
    """

    columns: dict[str, Array]
    names: list[str] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)
    threads: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.columns["start"])


class Growth:
    """Looks at one recorder, again and again; each op is given once, and not if it was folded away before a look."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._reader = OpReader(recorder)
        self._names: dict[int, int] = {}  # by operator
        self._devices: dict[str, int] = {}
        self._device_of: list[int] = []  # by layout
        self._threads = 0

    def new(self) -> New:
        names, devices, threads = len(self._names), len(self._devices), self._threads
        self._reader.begin_look()
        for _, _, device in self._recorder.rows.layouts[len(self._device_of) :]:
            self._device_of.append(self._devices.setdefault(str(device), len(self._devices)))
        parts = [self._columns(state, chunk, layouts) for state, chunk, layouts in self._reader.new()]
        columns = {
            name: np.concatenate([np.zeros(0, kind), *(part[name] for part in parts)]).astype(kind)
            for name, kind in COLUMNS.items()
        }
        self._threads = len(self._reader.complete)
        return New(
            columns,
            [by_id[operator].name for operator in list(self._names)[names:]],
            list(self._devices)[devices:],
            [state.name for state, _ in self._reader.complete[threads:]],
        )

    def _columns(self, state: ThreadState, chunk: Chunk, layouts: Array) -> dict[str, Array]:
        device_of = np.array([*self._device_of, -1], dtype=np.int16)
        return {
            "start": np.maximum(chunk.start - self._recorder.origin, 0),
            "duration": chunk.duration,
            "name": self._name_ids(chunk.operator),
            "device": device_of[np.where(layouts < len(self._device_of), layouts, -1)],
            "thread": np.full(len(chunk), state.index),
            "phase": np.where(chunk.head & OPTIMIZER, 2, np.where(chunk.head & BACKWARD, 1, 0)),
        }

    def _name_ids(self, operators: Array) -> Array:
        distinct, inverse = np.unique(operators, return_inverse=True)
        ids = [self._names.setdefault(operator, len(self._names)) for operator in distinct.tolist()]
        return np.array(ids, dtype=np.uint32)[inverse]
