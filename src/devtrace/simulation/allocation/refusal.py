"""The error of an allocation that does not fit, in the words of torch 2.13 for a process alone on its device."""

from typing import Final

import torch

from devtrace.simulation.allocation.allocator import ROUND, CachingAllocator, Endless, segment_for

_MORE: Final = "documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
_TRY: Final = "try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
_EXA: Final = 1 << 60


def out_of_memory(index: int, total: int, memory: Endless | CachingAllocator, nbytes: int) -> torch.OutOfMemoryError:
    """Return the error of a tensor of so many bytes; `total` is what the whole device has."""
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
