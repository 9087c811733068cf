"""The ops of a recording as they come, read from another thread: a view that grows appends them."""

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from devtrace.recording.columns.chunk import BACKWARD, OPTIMIZER, Array, Chunk
from devtrace.recording.columns.operator_info import by_id
from devtrace.recording.columns.thread_state import ThreadState
from devtrace.recording.hot.recorder import Recorder
from devtrace.recording.progress.counts import OpReader

COLUMNS: Final[dict[str, Any]] = {
    "start": np.float64,
    "duration": np.float64,
    "name": np.uint32,
    "device": np.int16,
    "thread": np.uint16,
    "phase": np.uint8,
}
"""The type of each column, as a browser's typed arrays have them."""


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
        found, inverse = np.unique(operators, return_inverse=True)
        ids = [self._names.setdefault(operator, len(self._names)) for operator in found.tolist()]
        return np.array(ids, dtype=np.uint32)[inverse]
