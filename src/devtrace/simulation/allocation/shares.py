"""Shares of a device's memory: each storage that is alive has one, given back when its tag has died with it."""

import sys
import weakref
from collections import deque
from collections.abc import Iterator
from time import perf_counter_ns as clock
from typing import Any

import torch

from devtrace.runtime.observers import GIVEN_BACK, LEAST, LOG_FULL, watching
from devtrace.simulation.allocation.allocator import CachingAllocator, Endless, out_of_memory


class SimulatedDevice:
    """One simulated device, or HOST, or FLOATING, with how many storages are alive on it.

    `memory` counts bytes of storages made since the simulation began. A storage that outlives its simulation gives its
    bytes back to the memory of that one, however late it is freed. `refused` is the size of the last that did not fit.
    """

    __slots__ = ("_memory", "device", "generator", "index", "refused", "total")

    def __init__(self, device: torch.device | None, index: int) -> None:
        self.device = device
        self.index = index
        self.refused = 0
        self.generator: Any = None
        self.begin(0)

    @property
    def memory(self) -> Endless | CachingAllocator:
        count_out_the_freed()
        return self._memory

    @property
    def live(self) -> int:
        count_out_the_freed()
        return sum(share.owner is self for share in list(alive.values()))

    def begin(self, total: int, limit: int | None = None) -> None:
        count_out_the_freed()
        self.total = total if limit is None else limit
        self._memory: Endless | CachingAllocator = Endless() if limit is None else CachingAllocator(limit)
        self.generator = None

    def set_limit(self, limit: int) -> None:
        """Limit PyTorch to so many bytes. Live storages move to a new allocator, which takes all of them first."""
        before = self.memory
        live = [share for share in list(alive.values()) if share.memory is self._memory]
        self._memory = allocator = CachingAllocator(sys.maxsize)
        allocator.highest, allocator.highest_reserved = before.highest, before.highest_reserved
        for share in live:
            share.memory, share.block = allocator, allocator.take(share.nbytes)
        allocator.release()
        allocator.limit = limit

    def __repr__(self) -> str:
        return f"SimulatedDevice({self.device})"


class Share(weakref.ref[Any]):
    """Count of a storage among those of its device, given back when the tag has died with it.

    Python drops a KeyboardInterrupt that arrives while a finalizer runs, and training frees storages all the time: with
    a `__del__` one of fifty interrupts was lost. So what runs then is `list.append`, in C, where none can arrive.
    """

    __slots__ = ("block", "memory", "nbytes", "owner", "storage")

    owner: SimulatedDevice
    nbytes: int
    memory: Any
    block: Any
    storage: weakref.ref[torch.UntypedStorage] | None

    @property
    def size(self) -> int:
        size: int = self.block if isinstance(self.block, int) else self.block.size
        return size

    def take(self, owner: SimulatedDevice, nbytes: int) -> None:
        """Allocate anew, and only then give the old block back: until the data is copied, both exist."""
        former_owner, memory, block = self.owner, self.memory, self.block
        self._allocate(owner, nbytes)
        memory.give(block)
        if owner.device is None:
            _log_end(self, former_owner)

    def _allocate(self, owner: SimulatedDevice, nbytes: int) -> None:
        """Take memory; raise CUDA's error, before anything is counted, where the device has no more."""
        memory = owner._memory
        block = memory.take(nbytes)
        if block is None:
            owner.refused = nbytes
            assert isinstance(memory, CachingAllocator)
            raise out_of_memory(owner.index, owner.total, memory, nbytes)
        self.owner, self.nbytes, self.memory, self.block = owner, nbytes, memory, block
        if watching and owner.device:
            watch = watching[-1]
            watch.log.extend((clock(), id(self), self.size, owner.index))
            if len(watch.log) >= LOG_FULL:
                watch.pack()
            if memory.allocated > watch.marks.get(owner.device, LEAST):
                watch.look_above(owner.device, memory.allocated)


alive: dict[int, Share] = {}
_freed: deque[Any] = deque()  # in their order: the caching allocator joins free blocks


def count_in(tag: object, owner: SimulatedDevice, nbytes: int, storage: torch.UntypedStorage | None) -> Share:
    """Count a new storage among those of a device; where that has a limit, or may get one, remember which it is."""
    if _freed:
        count_out_the_freed()
    share = Share(tag, _freed.append)
    share._allocate(owner, nbytes)
    may_fill = owner._memory.limit is not None or owner.device is None
    share.storage = weakref.ref(storage) if may_fill and storage is not None else None
    alive[id(share)] = share
    return share


def count_out_the_freed() -> None:
    while _freed:
        try:
            share = _freed.popleft()
        except IndexError:  # another thread was faster
            return
        if alive.pop(id(share), None) is not None:  # else an interrupt came before it was counted in
            share.memory.give(share.block)
            _log_end(share, share.owner)


def _log_end(share: Share, owner: SimulatedDevice) -> None:
    if watching and owner.device:
        watching[-1].log.extend((clock(), id(share), GIVEN_BACK, owner.index))


def alive_on(owner: SimulatedDevice) -> Iterator[tuple[torch.UntypedStorage, int]]:
    """Yield the storages on a device, each with the bytes of its block; none where the device has no limit."""
    count_out_the_freed()
    if owner._memory.limit is not None:
        for share in list(alive.values()):
            storage = share.storage() if share.memory is owner._memory and share.storage is not None else None
            if storage is not None and share.block:
                yield storage, share.block.size


def blocks() -> Iterator[tuple[int, int, int]]:
    """Yield the id of each live share of a simulated device, its bytes, and the device's index."""
    count_out_the_freed()
    for share in list(alive.values()):
        if share.owner.device is not None and share.memory is share.owner._memory:
            yield id(share), share.size, share.owner.index
