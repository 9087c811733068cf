"""CUDA's caching allocator, as far as its counts go: one stream, the default configuration, and no memory behind it.

A size is rounded to 512 bytes; up to 1 MiB goes into segments of 2 MiB, the rest into segments of 20 MiB or of its own
size. The smallest free block that is large enough is taken, and the rest split off where that is worth it. A freed
block is joined with its free neighbours. Where nothing fits, whole free segments are given back before it fails. So
c10/cuda/CUDACachingAllocator.cpp does it.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from threading import RLock, get_ident
from typing import Any, Final, TypeVar

import torch

DoneT = TypeVar("DoneT")

ROUND: Final = 512
SMALL: Final = 1 << 20  # the largest request that goes into the small pool
SMALL_SEGMENT: Final = 2 << 20
LARGE_SEGMENT: Final = 20 << 20
LARGE: Final = 10 << 20  # a request of this size gets a segment of its own
_ADDRESS: Final = 48  # bits of one
_FIRST: Final = 0x7F00_0000_0000
_MORE: Final = "documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
_TRY: Final = "try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
_EXA: Final = 1 << 60


class Endless:
    """Memory without a limit: the sum of what is alive, each rounded. A block is its size.

    `peak` is since the last reset or release, whichever was later, so that a tensor costs no more than the sum.
    """

    limit: int | None = None
    retries = failures = segments_made = segments_freed = 0

    def __init__(self) -> None:
        self.allocated = self.peak = self._highest = self._cached = self._reserved_before = 0

    def take(self, nbytes: int) -> int:
        """Count a tensor's bytes; return what to give back."""
        size = (nbytes + 511) & -512
        self.allocated = allocated = self.allocated + size
        if allocated > self.peak:
            self.peak = allocated
        return size

    def give(self, block: int) -> None:
        self.allocated -= block

    def segments(self) -> Iterator[tuple[bool, list[Block]]]:
        return iter(())  # of which nothing is known

    @property
    def highest(self) -> int:
        return max(self._highest, self.peak)

    @property
    def reserved(self) -> int:
        """Bytes that the cache has: it gives nothing back but by `empty_cache`."""
        return -(-max(self._cached, self.peak) // SMALL_SEGMENT) * SMALL_SEGMENT

    @property
    def highest_reserved(self) -> int:
        return max(self._reserved_before, self.reserved)

    def release(self) -> None:
        """`empty_cache`: start the peaks anew, and keep those of before apart."""
        self._reserved_before, self._highest = self.highest_reserved, self.highest
        self._cached, self.peak = 0, self.allocated

    def reset(self) -> None:
        """Forget the peaks."""
        self._cached = max(self._cached, self.peak)
        self._reserved_before = self._highest = 0
        self.peak = self.allocated


class Block:
    """A part of a segment, between its neighbours there."""

    __slots__ = ("address", "after", "before", "free", "pool", "size")

    def __init__(self, address: int, size: int, pool: Pool, before: Block | None, after: Block | None) -> None:
        self.address, self.size, self.pool = address, size, pool
        self.before, self.after = before, after
        self.free = True


class Pool:
    """Free blocks, sorted by size and then by address: of those that fit, the first is the best."""

    def __init__(self, least: int) -> None:
        self.least = least  # the smallest rest that is split off
        self.keys: list[int] = []
        self.blocks: dict[int, Block] = {}
        self.segments: list[Block] = []  # the first block of each

    def remove(self, block: Block) -> None:
        key = block.size << _ADDRESS | block.address
        place = bisect_left(self.keys, key)
        if place < len(self.keys) and self.keys[place] == key:  # else an interrupt came between two lines of `give`
            del self.keys[place]
        self.blocks.pop(key, None)


class CachingAllocator:
    """Memory of one device, of which PyTorch may have `limit` bytes.

    A program's own code may run between two lines of a call: a signal's handler, a finalizer. It gets a segment of its
    own then. What it gives back waits for the end of that call, whose blocks stay as they are.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.allocated = self.reserved = self.retries = self.failures = 0
        self.segments_made = self.segments_freed = 0  # ever
        self.highest = self.highest_reserved = 0
        self._small, self._large = Pool(ROUND), Pool(SMALL + 1)
        self._next = _FIRST
        self._lock, self._busy = RLock(), 0  # and the thread that is in the midst of a call
        self._late: list[Block] = []  # given back in the midst of another call

    def take(self, nbytes: int) -> Block | int | None:
        """Return a block of at least so many bytes; None where CUDA is out of memory, 0 for no bytes."""
        if not nbytes:
            return 0
        size = (nbytes + 511) & -512
        pool = self._small if size <= SMALL else self._large
        if self._busy == get_ident():
            return self._mark_used(self._new_segment(size, pool))  # in the midst of another call
        return self._run_alone(self._block_for, size, pool)

    def give(self, block: Block | int) -> None:
        """Put a block back, joined with what is free beside it."""
        if isinstance(block, int):
            return
        self._late.append(block)
        if self._busy != get_ident():
            self._run_alone(self._put_late_back)

    def release(self) -> int:
        """`empty_cache`: give back all segments in which nothing is. Return how many there were."""
        return 0 if self._busy == get_ident() else self._run_alone(self._release)

    def reset(self) -> None:
        """Forget the peaks."""
        self.highest, self.highest_reserved = self.allocated, self.reserved

    def segments(self) -> Iterator[tuple[bool, list[Block]]]:
        """Yield the blocks of each segment, from its start, and whether it is of the small pool."""
        for pool in (self._small, self._large):
            for first in pool.segments:
                blocks: list[Block] = []
                block: Block | None = first
                while block is not None:
                    blocks.append(block)
                    block = block.after
                yield pool is self._small, blocks

    def _run_alone(self, function: Callable[..., DoneT], *args: Any) -> DoneT:
        """Call a function that no other call may come between, then put back the blocks given back meanwhile."""
        with self._lock:
            try:
                self._busy = get_ident()
                result = function(*args)
                self._put_late_back()
            finally:
                self._busy = 0
        return result

    def _put_late_back(self) -> None:
        while self._late:
            self._put_back(self._late.pop())

    def _block_for(self, size: int, pool: Pool) -> Block | None:
        keys, blocks = pool.keys, pool.blocks
        place = bisect_left(keys, size << _ADDRESS)
        block = blocks.pop(keys.pop(place), None) if place < len(keys) else None
        if block is None and (block := self._segment_within_limit(size, pool)) is None:
            return None
        if block.size - size >= pool.least:
            after = block.after
            block.after = rest = Block(block.address + size, block.size - size, pool, block, after)
            block.size = size
            if after is not None:
                after.before = rest
            key = rest.size << _ADDRESS | rest.address
            blocks[key] = rest
            insort(keys, key)
        return self._mark_used(block)

    def _mark_used(self, block: Block) -> Block:
        block.free = False
        self.allocated = allocated = self.allocated + block.size
        if allocated > self.highest:
            self.highest = allocated
        return block

    def _put_back(self, block: Block) -> None:
        pool, size = block.pool, block.size
        self.allocated -= size
        before, after = block.before, block.after
        if after is not None and after.free:
            pool.remove(after)
            block.size = size = size + after.size
            block.after = after = after.after
            if after is not None:
                after.before = block
        if before is not None and before.free:
            pool.remove(before)
            before.size = size = size + before.size
            before.after = after
            if after is not None:
                after.before = before
            block = before
        block.free = True
        key = size << _ADDRESS | block.address
        pool.blocks[key] = block
        insort(pool.keys, key)

    def _release(self) -> int:
        count = 0
        for pool in (self._small, self._large):
            for block in [block for block in pool.blocks.values() if block.before is None and block.after is None]:
                pool.remove(block)
                pool.segments.remove(block)
                self.reserved -= block.size
                count += 1
        self.segments_freed += count
        return count

    def _segment_within_limit(self, size: int, pool: Pool) -> Block | None:
        """Return a new segment, if need be after giving free ones back; None where it does not fit the limit."""
        segment_size = segment_for(size)
        if self.reserved + segment_size > self.limit:
            self.retries += 1
            self._release()
            if self.reserved + segment_size > self.limit:
                self.failures += 1
                return None
        return self._new_segment(segment_size, pool)

    def _new_segment(self, size: int, pool: Pool) -> Block:
        """Return the one block of a new segment, at addresses that no other segment gets."""
        address, self._next = self._next, self._next + size
        self.reserved += size
        if self.reserved > self.highest_reserved:
            self.highest_reserved = self.reserved
        block = Block(address, size, pool, None, None)
        pool.segments.append(block)
        self.segments_made += 1
        return block


def segment_for(size: int) -> int:
    """Return the size of the segment to ask the driver for, where no free block has this rounded size."""
    if size <= SMALL:
        return SMALL_SEGMENT
    return LARGE_SEGMENT if size < LARGE else -(-size // SMALL_SEGMENT) * SMALL_SEGMENT


def out_of_memory(index: int, total: int, memory: Endless | CachingAllocator, nbytes: int) -> torch.OutOfMemoryError:
    """Return the error of a tensor of so many bytes, in the words of torch 2.13 for a process alone on its device.

    `total` is what the whole device has.
    """
    if nbytes >= _EXA:
        return torch.OutOfMemoryError("CUDA out of memory. Tried to allocate more than 1EB memory.")
    allowed = f"{_text(memory.limit)} allowed; " if memory.limit is not None and memory.limit < total else ""
    return torch.OutOfMemoryError(
        f"CUDA out of memory. Tried to allocate {_text(segment_for(-(-nbytes // ROUND) * ROUND))}. "
        f"GPU {index} has a total capacity of {_text(total)} of which {_text(max(0, total - memory.reserved))} is free"
        f". Including non-PyTorch memory, this process has {_text(memory.reserved)} memory in use. {allowed}"
        f"Of the allocated memory {_text(memory.allocated)} is allocated by PyTorch, and "
        f"{_text(memory.reserved - memory.allocated)} is reserved by PyTorch but unallocated. "
        f"If reserved but unallocated memory is large {_TRY}  See {_MORE}"
    )


def _text(size: int) -> str:
    """c10's format_size."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size > unit:
            return f"{size / unit:.2f} {name}"
    return f"{size} bytes"
