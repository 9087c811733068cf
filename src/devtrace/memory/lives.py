"""How long each block of a simulated device's memory lives, from what the device logged; which tensor has it."""

import threading
from itertools import pairwise
from time import perf_counter_ns
from typing import Final

import numpy as np

from devtrace.recording.columns.tensor_rows import Array
from devtrace.runtime.observers import GIVEN_BACK, LOG_FIELDS, existing
from devtrace.trace.curve import ENDLESS, Lives
from devtrace.trace.tables import TraceData
from devtrace.trace.views import storage_owners

MOST_EVENTS: Final = 1 << 19
"""A longer log is thinned out: what is there at none of the heights of its stretches is forgotten."""
_STRETCHES: Final = 256
_ROUND: Final = 512
_UNSPLIT: Final = 1 << 20
"""A block that is larger than this may be so much larger than its tensor: torch leaves the rest with it."""


class Log:
    """Log of the memory of simulated devices while it is watched; a long one keeps its heights."""

    def __init__(self) -> None:
        self.log: list[int] = []
        self._packed: list[Array] = []
        self._lock = threading.Lock()

    def begin(self) -> None:
        """Note the blocks that were there before."""
        now = perf_counter_ns()
        for ask in existing:
            for owner, size, device in ask():
                self.log.extend((now, owner, size, device))

    def pack(self) -> None:
        with self._lock:
            end = len(self.log)  # other threads go on adding behind it
            self._packed.append(np.array(self.log[:end], dtype=np.int64).reshape(-1, LOG_FIELDS))
            del self.log[:end]
            if sum(map(len, self._packed)) > MOST_EVENTS:
                self._packed = [thinned(np.concatenate(self._packed))]

    def events(self) -> Array:
        """Return the log as a table of LOG_FIELDS."""
        self.pack()
        return np.concatenate(self._packed)


def paired(events: Array) -> tuple[Array, Array]:
    """Return which events begin a block, and which one ends each: the next of its owner, ENDLESS for none."""
    order = np.argsort(events[:, 1], kind="stable")
    ends = np.full(len(events), ENDLESS)
    follows = events[order[1:], 1] == events[order[:-1], 1]
    ends[order[:-1][follows]] = order[1:][follows]
    begins = np.flatnonzero(events[:, 2] > GIVEN_BACK)
    return begins, ends[begins]


def thinned(events: Array) -> Array:
    """Return the events of those blocks that are there at the height of a stretch of the log, or at its end."""
    begins, ends = paired(events)
    marks = np.unique(np.concatenate([_heights(events, begins, ends, device) for device in np.unique(events[:, 3])]))
    kept = (np.searchsorted(marks, ends) > np.searchsorted(marks, begins)) | (ends == ENDLESS)
    ended = kept & (ends < ENDLESS)
    given_back = events[ends[ended]]
    given_back[:, 1:] = events[begins[ended], 1:]
    given_back[:, 2] = GIVEN_BACK
    order = np.argsort(np.concatenate([2 * begins[kept] + 1, 2 * ends[ended]]), kind="stable")
    thin: Array = np.concatenate([events[begins[kept]], given_back])[order]
    return thin


def _heights(events: Array, begins: Array, ends: Array, device: int) -> Array:
    """Return for each stretch the event at which a device has most."""
    change = np.zeros(len(events), dtype=np.int64)
    mine = events[begins, 3] == device
    change[begins[mine]] = events[begins[mine], 2]
    ended = mine & (ends < ENDLESS)
    np.subtract.at(change, ends[ended], events[begins[ended], 2])
    level = np.cumsum(change)
    edges = np.linspace(0, len(events), _STRETCHES + 1).astype(np.int64)
    return np.array([first + int(level[first:last].argmax()) for first, last in pairwise(edges)])


def lives_in(trace: TraceData, events: Array, origin: int) -> Lives:
    """Return the blocks with their tensors and the ops between which each is there."""
    begins, ends = paired(events)
    moments = events[:, 0] - origin
    ops = np.searchsorted(trace.ops.ints("start"), moments, side="right") - 1
    names = {str(name): row for row, name in enumerate(trace.devices)}
    device = np.array([names.get(f"cuda:{index}", -1) for index in range(int(events[:, 3].max(initial=0)) + 1)])
    own = Lives(
        begin=begins,
        end=ends,
        begin_op=ops[begins],
        end_op=np.where(ends < ENDLESS, ops[np.minimum(ends, len(events) - 1)], len(trace.ops)),
        bytes=events[begins, 2],
        device=device[events[begins, 3]],
        tensor=np.full(len(begins), -1),
    )
    return own._replace(tensor=_tensors(trace, own))


def _tensors(trace: TraceData, lives: Lives) -> Array:
    """Return the row of the tensor that each block is for: one that its op made, of the size of the block."""
    tensors = trace.tensors
    own = np.flatnonzero((storage_owners(trace) == np.arange(len(tensors))) & (tensors.ints("bytes") > 0))
    rounded = -(-tensors.ints("bytes")[own].astype(np.int64) // _ROUND) * _ROUND
    made = _groups(trace, tensors.ints("producer")[own], tensors.ints("device")[own])
    taken = _groups(trace, lives.begin_op, lives.device)
    rows, blocks = np.lexsort((-rounded, made)), np.lexsort((-lives.bytes, taken))
    found = np.full(len(taken), -1)
    groups, sizes, tensors_there = made[rows].tolist(), rounded[rows].tolist(), own[rows].tolist()
    at, end = 0, len(groups)
    for block, group, size in zip(blocks.tolist(), taken[blocks].tolist(), lives.bytes[blocks].tolist(), strict=True):
        while at < end and (groups[at] < group or (groups[at] == group and sizes[at] > size)):
            at += 1
        if at < end and groups[at] == group and size - sizes[at] <= (_UNSPLIT if size > _UNSPLIT else 0):
            found[block] = tensors_there[at]
            at += 1
    return found


def _groups(trace: TraceData, ops: Array, devices: Array) -> Array:
    return np.maximum(ops, -1).astype(np.int64) * (len(trace.devices) + 1) + devices
