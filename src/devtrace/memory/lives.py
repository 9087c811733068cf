"""How long each block of a simulated device's memory lives, by the device's log, and which tensor the block is for."""

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
"""A block above this size may have so many bytes more than its tensor: torch splits off no smaller rest."""


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
    """Return which events begin a block, and for each the event that ends it: its owner's next one, else ENDLESS."""
    by_owner = np.argsort(events[:, 1], kind="stable")
    ends = np.full(len(events), ENDLESS)
    has_next = events[by_owner[1:], 1] == events[by_owner[:-1], 1]
    ends[by_owner[:-1][has_next]] = by_owner[1:][has_next]
    begins = np.flatnonzero(events[:, 2] > GIVEN_BACK)
    return begins, ends[begins]


def thinned(events: Array) -> Array:
    """Return the events of those blocks that are there at the height of a stretch of the log, or at its end."""
    begins, ends = paired(events)
    heights = np.unique(np.concatenate([_heights(events, begins, ends, device) for device in np.unique(events[:, 3])]))
    is_kept = (np.searchsorted(heights, ends) > np.searchsorted(heights, begins)) | (ends == ENDLESS)
    has_ended = is_kept & (ends < ENDLESS)
    given_back = events[ends[has_ended]]
    given_back[:, 1:] = events[begins[has_ended], 1:]
    given_back[:, 2] = GIVEN_BACK
    # Where one event ends a block and begins the next of its owner, the end comes first.
    order = np.argsort(np.concatenate([2 * begins[is_kept] + 1, 2 * ends[has_ended]]), kind="stable")
    thin: Array = np.concatenate([events[begins[is_kept]], given_back])[order]
    return thin


def _heights(events: Array, begins: Array, ends: Array, device: int) -> Array:
    """Return for each stretch of the log the event at which a device has most memory in use."""
    change = np.zeros(len(events), dtype=np.int64)
    is_of_device = events[begins, 3] == device
    change[begins[is_of_device]] = events[begins[is_of_device], 2]
    has_ended = is_of_device & (ends < ENDLESS)
    np.subtract.at(change, ends[has_ended], events[begins[has_ended], 2])
    in_use = np.cumsum(change)
    edges = np.linspace(0, len(events), _STRETCHES + 1).astype(np.int64)
    return np.array([begin + int(in_use[begin:end].argmax()) for begin, end in pairwise(edges)])


def lives_in(trace: TraceData, events: Array, origin: int) -> Lives:
    """Return the blocks with their tensors and the ops between which each is there."""
    begins, ends = paired(events)
    moments = events[:, 0] - origin
    ops = np.searchsorted(trace.ops.ints("start"), moments, side="right") - 1
    ids = {str(device): id for id, device in enumerate(trace.devices)}
    devices = np.array([ids.get(f"cuda:{index}", -1) for index in range(int(events[:, 3].max(initial=0)) + 1)])
    lives = Lives(
        begin=begins,
        end=ends,
        begin_op=ops[begins],
        end_op=np.where(ends < ENDLESS, ops[np.minimum(ends, len(events) - 1)], len(trace.ops)),
        bytes=events[begins, 2],
        device=devices[events[begins, 3]],
        tensor=np.full(len(begins), -1),
    )
    return lives._replace(tensor=_tensors_of_blocks(trace, lives))


def _tensors_of_blocks(trace: TraceData, lives: Lives) -> Array:
    """Return the tensor that each block is for: one that the same op made on the device, of the size of the block."""
    table = trace.tensors
    owners = np.flatnonzero((storage_owners(trace) == np.arange(len(table))) & (table.ints("bytes") > 0))
    rounded = -(-table.ints("bytes")[owners].astype(np.int64) // _ROUND) * _ROUND
    keys_of_owners = _keys_of_op_and_device(trace, table.ints("producer")[owners], table.ints("device")[owners])
    keys_of_blocks = _keys_of_op_and_device(trace, lives.begin_op, lives.device)
    # Both are sorted by op and device, then by size, the largest first, and gone through together.
    order, blocks = np.lexsort((-rounded, keys_of_owners)), np.lexsort((-lives.bytes, keys_of_blocks))
    tensor_of_block = np.full(len(blocks), -1)
    keys, sizes, tensors = keys_of_owners[order].tolist(), rounded[order].tolist(), owners[order].tolist()
    sorted_blocks = zip(blocks.tolist(), keys_of_blocks[blocks].tolist(), lives.bytes[blocks].tolist(), strict=True)
    index, end = 0, len(keys)
    for block, key, size in sorted_blocks:
        while index < end and (keys[index] < key or (keys[index] == key and sizes[index] > size)):
            index += 1
        if index < end and keys[index] == key and size - sizes[index] <= (_UNSPLIT if size > _UNSPLIT else 0):
            tensor_of_block[block] = tensors[index]
            index += 1
    return tensor_of_block


def _keys_of_op_and_device(trace: TraceData, ops: Array, devices: Array) -> Array:
    return np.maximum(ops, -1).astype(np.int64) * (len(trace.devices) + 1) + devices
