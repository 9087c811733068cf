"""The ops of a recording as they come, read from another thread: what a view that grows appends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from devtrace.recording.columns.chunk import BACKWARD, OPTIMIZER, Chunk
from devtrace.recording.columns.operator_info import by_id
from devtrace.recording.columns.thread_state import NUMBERS, ThreadState
from devtrace.recording.hot.recorder import Recorder
from devtrace.recording.progress.counts import Homes, Reader

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class New:
    """Ops since the last look, by columns, and what those speak of for the first time.

    `start` and `duration` in ns (duration -1: it raised), `name`, `device` (-1: not known) and `thread` as indexes
    into all names so far, `phase` 1 in a backward pass, 2 in an optimizer, else 0. Ops of one thread are in order.
    """

    columns: dict[str, Array]
    names: list[str] = field(default_factory=list)
    devices: list[str] = field(default_factory=list)
    threads: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.columns["start"])


class Growth:
    """Looks at one recorder, again and again; each op is told once, and not what was folded away before a look."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._homes = Homes(recorder)
        self._reader = Reader()
        self._names: dict[int, int] = {}  # by plan
        self._devices: dict[str, int] = {}
        self._device_of: list[int] = []  # by layout
        self._threads = 0

    def new(self) -> New:
        names, devices = len(self._names), len(self._devices)
        limits = [(state, state.op & NUMBERS) for state in list(self._recorder.threads)]
        self._homes.learn()
        self._learn_devices()
        parts = [self._columns(state, chunk) for state, limit in limits for chunk in self._reader.new(state, limit)]
        columns = {
            name: np.concatenate([part[name] for part in parts]).astype(kind) if parts else np.zeros(0, kind)
            for name, kind in COLUMNS.items()
        }
        told = [state.name for state, _ in limits[self._threads :]]
        self._threads = len(limits)
        return New(columns, self._told_names(names), list(self._devices)[devices:], told)

    def _told_names(self, known: int) -> list[str]:
        return [by_id[plan].name for plan in list(self._names)[known:]]

    def _learn_devices(self) -> None:
        layouts = self._recorder.rows.layouts
        for _, _, device in layouts[len(self._device_of) :]:
            self._device_of.append(self._devices.setdefault(str(device), len(self._devices)))

    def _columns(self, state: ThreadState, chunk: Chunk) -> dict[str, Array]:
        homes = self._homes.of(chunk)
        device_of = np.array([*self._device_of, -1], dtype=np.int16)
        return {
            "start": np.maximum(chunk.start - self._recorder.origin, 0),
            "duration": chunk.duration,
            "name": self._name_ids(chunk.plan),
            "device": device_of[np.where(homes < len(self._device_of), homes, -1)],
            "thread": np.full(len(chunk), state.index),
            "phase": np.where(chunk.head & OPTIMIZER, 2, np.where(chunk.head & BACKWARD, 1, 0)),
        }

    def _name_ids(self, plans: Array) -> Array:
        found, inverse = np.unique(plans, return_inverse=True)
        ids = [self._names.setdefault(plan, len(self._names)) for plan in found.tolist()]
        return np.array(ids or [0], dtype=np.uint32)[inverse]


COLUMNS: dict[str, Any] = {
    "start": np.float64,
    "duration": np.float64,
    "name": np.uint32,
    "device": np.int16,
    "thread": np.uint16,
    "phase": np.uint8,
}
"""The type of each column, as a browser's typed arrays have them."""
