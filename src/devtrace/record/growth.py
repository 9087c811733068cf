"""The ops of a recording as they come, read from another thread: what a view that grows appends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from devtrace.record.counts import Homes, unpacked
from devtrace.record.merge import PLAN_SHIFT
from devtrace.record.plans import by_id
from devtrace.record.recorder import Recorder
from devtrace.record.state import BACKWARD, OPTIMIZER, Chunk, ThreadState

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
    """Looks at one recorder, again and again; each op is told once."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._homes = Homes(recorder)
        self._read: dict[int, int] = {}  # of each thread how many chunks were read
        self._tail: dict[int, int] = {}  # and how many ops of the one being filled
        self._names: dict[int, int] = {}  # by plan
        self._devices: dict[str, int] = {}
        self._device_of: list[int] = []  # by layout
        self._threads = 0

    def new(self) -> New:
        names, devices = len(self._names), len(self._devices)
        self._homes.learn()
        self._learn_devices()
        states = list(self._recorder.threads)
        parts = [part for state in states for part in self._parts(state)]
        columns = {
            name: np.concatenate([part[name] for part in parts]).astype(kind) if parts else np.zeros(0, kind)
            for name, kind in COLUMNS.items()
        }
        told = [state.name for state in states[self._threads :]]
        self._threads = len(states)
        return New(columns, self._told_names(names), list(self._devices)[devices:], told)

    def _told_names(self, known: int) -> list[str]:
        return [by_id[plan].name for plan in list(self._names)[known:]]

    def _learn_devices(self) -> None:
        layouts = self._recorder.rows.layouts
        for _, _, device in layouts[len(self._device_of) :]:
            self._device_of.append(self._devices.setdefault(str(device), len(self._devices)))

    def _parts(self, state: ThreadState) -> list[dict[str, Array]]:
        """What a thread did since: the chunks that it packed, and of the one it fills what is there."""
        read, skip = self._read.get(state.index, 0), self._tail.get(state.index, 0)
        packed = state.chunks[read:]
        parts = []
        for chunk in packed:
            parts.append(self._columns(state, chunk, skip))
            skip = 0
        tail = unpacked(state) if len(state.chunks) == read + len(packed) else None
        if tail is not None:
            parts.append(self._columns(state, tail, skip))
            skip = len(tail.head)
        self._read[state.index], self._tail[state.index] = read + len(packed), skip
        return parts

    def _columns(self, state: ThreadState, chunk: Chunk, skip: int) -> dict[str, Array]:
        homes = self._homes.of(chunk)[skip:]
        head = chunk.head[skip:]
        device_of = np.array([*self._device_of, -1], dtype=np.int16)
        return {
            "start": np.maximum(chunk.start[skip:] - self._recorder.origin, 0),
            "duration": chunk.duration[skip:],
            "name": self._name_ids(head >> PLAN_SHIFT),
            "device": device_of[np.where(homes < len(self._device_of), homes, -1)],
            "thread": np.full(len(head), state.index),
            "phase": np.where(head & OPTIMIZER, 2, np.where(head & BACKWARD, 1, 0)),
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
