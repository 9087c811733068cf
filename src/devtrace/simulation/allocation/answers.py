"""What a program is told of a simulated device's memory: its sums, their peaks, what is free, the blocks."""

from typing import Any

import torch

from devtrace.runtime.observers import Alive
from devtrace.simulation.allocation.allocator import Block
from devtrace.simulation.allocation.shares import SimulatedDevice, alive_on
from devtrace.simulation.devices import DEVICES


def memory_stats(device: int) -> dict[str, Any]:
    """Return the allocator's statistics, as far as they can be known."""
    found = DEVICES.find(device)
    memory = found.memory
    used = _stat(memory.allocated, memory.highest)
    counts = {"allocation": found.live, "active": found.live, **_of_blocks(memory)}
    return {
        **dict.fromkeys(("allocated_bytes", "active_bytes", "requested_bytes"), used),
        "reserved_bytes": _stat(memory.reserved, memory.highest_reserved),
        **{name: _stat(count, count) for name, count in counts.items()},
        **dict.fromkeys(("oversize_allocations", "oversize_segments"), _stat(0, 0)["all"]),
        "num_alloc_retries": memory.retries,
        "num_ooms": memory.failures,
        **dict.fromkeys(("num_sync_all_streams", "num_oom_rejections"), 0),
        "num_device_alloc": memory.made,
        "num_device_free": memory.given,
        "max_split_size": -1,  # of blocks that may be split: any
        "reserved_bytes_by_private_pools": {},
    }


def empty_cache() -> None:
    for each in DEVICES.simulated:
        each.memory.release()


def memory_info(device: int | None = None) -> tuple[int, int]:
    """Free and total bytes of a device; without a limit a program may hold more than there is."""
    found = DEVICES.find(device)
    return max(found.total - found.memory.reserved, 0), found.total


def set_fraction(fraction: float, device: int) -> None:
    found = DEVICES.find(device)
    found.allow(int(fraction * found.total))


def fraction(device: int) -> float:
    found = DEVICES.find(device)
    limit = found.memory.limit
    return 1.0 if limit is None else limit / found.total


def snapshot(*_: Any) -> dict[str, Any]:
    """Return the blocks as pytorch.org/memory_viz reads them; without a limit nothing is known of blocks."""
    found = [_segment(each, *part) for each in DEVICES.simulated for part in each.memory.segments()]
    return {"segments": found, "device_traces": [[] for _ in DEVICES.simulated]}


def _segment(device: SimulatedDevice, small: bool, blocks: list[Block]) -> dict[str, Any]:
    used = sum(block.size for block in blocks if not block.free)
    return {
        "device": device.index,
        "address": blocks[0].address,
        "total_size": sum(block.size for block in blocks),
        **dict.fromkeys(("allocated_size", "active_size", "requested_size"), used),
        "stream": 0,
        "segment_type": "small" if small else "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": [_block(block) for block in blocks],
    }


def _block(block: Block) -> dict[str, Any]:
    state = "inactive" if block.free else "active_allocated"
    return {"address": block.address, "size": block.size, "requested_size": block.size, "state": state, "frames": []}


def _of_blocks(memory: Any) -> dict[str, int]:
    segments = [blocks for _, blocks in memory.segments()]
    split = [block.size for blocks in segments for block in blocks if block.free and len(blocks) > 1]
    return {"segment": len(segments), "inactive_split": len(split), "inactive_split_bytes": sum(split)}


def _stat(current: int, peak: int) -> dict[str, dict[str, int]]:
    """One entry of the allocator's statistics, all of it in the large pool."""
    all_ = {"current": current, "peak": peak, "allocated": current, "freed": 0}
    return {"all": all_, "large_pool": all_, "small_pool": dict.fromkeys(all_, 0)}


def alive(device: torch.device) -> Alive | None:
    """Return what lives on a simulated device."""
    found = DEVICES.by_device.get(device)
    if found is None:
        return None
    memory = found.memory
    sums = (memory.limit or 0, memory.reserved, memory.allocated)
    return Alive(device, found.refused, *sums, alive_on(found), memory.highest)
