"""The part of `torch._C` that only a CUDA build has, so that `torch.cuda` and `torch.accelerator` work as they are.

torch's own Python functions stay: they find a driver that knows how many devices there are, and their memory.
"""

import ctypes
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import torch

from devtrace.runtime.observers import Alive, existing, knowing
from devtrace.runtime.patches import Patches
from devtrace.runtime.tables import json_of
from devtrace.runtime.torch_names import replace, returning
from devtrace.simulation.allocation.shares import alive_on, blocks
from devtrace.simulation.devices import DEVICES
from devtrace.simulation.handlers import handlers
from devtrace.simulation.refusals import WAITS, show_waits

CUDA_VERSION = "13.0"


def install(patches: Patches, undo: ExitStack) -> None:
    """Give `torch._C` and `torch.cuda` what they have on a machine with these devices."""
    undo.callback(show_waits, 0)
    knowing.append(alive)
    undo.callback(knowing.remove, alive)
    existing.append(blocks)
    undo.callback(existing.remove, blocks)
    replace("driver", _SHARED, patches)
    compiled = {"_cuda_getCompiledVersion": getattr(torch._C, "_cuda_getCompiledVersion", lambda: 13000)}
    for owner, names in ((torch._C, _NAMES | _preferred_backends() | compiled), (torch.cuda, _torch_cuda_globals())):
        for name, value in names.items():
            patches.set(owner, name, value)
    patches.set(torch.version, "cuda", torch.version.cuda or CUDA_VERSION)
    patches.set(torch.backends.cudnn, "is_available", returning(True))
    # Says that a weight need not be laid out for cuDNN, and does not warn that this build lacks it.
    patches.set(torch.backends.cudnn, "is_acceptable", returning(False))
    patches.set(torch.cuda.nccl, "is_available", returning(False))


def _exchange(index: int) -> int:
    """Make another device current, and return which one was."""
    before = DEVICES.current
    DEVICES.set_current(index)
    return before if index >= 0 else -1


def _set_sync_debug_mode(level: int) -> None:
    show_waits(level)
    handlers.clear()


def _properties(device: int) -> SimpleNamespace:
    """`torch.cuda.get_device_properties`."""
    total, uuid = DEVICES.find(device).total, f"{_cuda_fact('uuid')}{device:012}"
    return SimpleNamespace(**_cuda_fact("properties"), total_memory=total, uuid=uuid, pci_bus_id=device)


def _cuda_fact(name: str) -> Any:
    return json_of("simulation/cuda_properties.json")[name]


def _is_in_bad_fork() -> bool:
    return bool(DEVICES.refusal)


def _preferred_backends() -> dict[str, object]:
    """Return getters and setters of the library that a program prefers; here all of them compute alike."""
    linalg, blas = [torch._C._get_linalg_preferred_backend()], [torch._C._get_blas_preferred_backend()]
    return {
        "_get_linalg_preferred_backend": lambda: linalg[0],
        "_set_linalg_preferred_backend": lambda value: linalg.__setitem__(0, value),
        "_get_blas_preferred_backend": lambda: blas[0],
        "_set_blas_preferred_backend": lambda value: blas.__setitem__(0, value),
    }


def _torch_cuda_globals() -> dict[str, object]:
    """Module globals of torch.cuda that its initialisation fills; `_initialized` keeps it from trying."""
    return {
        "_initialized": True,
        "_cached_device_count": len(DEVICES.simulated),
        "_is_in_bad_fork": _is_in_bad_fork,
        "_exchange_device": _exchange,
        "_maybe_exchange_device": lambda index: _exchange(index),  # torch._dynamo tells the two apart
        "_get_device_properties": _properties,
        "_cudart": SimpleNamespace(
            cudaMemGetInfo=memory_info,
            cudaGetErrorString=lambda code: _cuda_fact("errors").get(str(int(code)), "unrecognized error code"),
            cudaError=type("cudaError", (int,), {"success": 0}),
            **dict.fromkeys(
                ("cudaProfilerStart", "cudaProfilerStop", "cudaHostRegister", "cudaHostUnregister"), returning(0)
            ),
        ),
    }


# What a program is told of a device's memory: its sums, their peaks, what is free, the blocks.


def memory_stats(device: int) -> dict[str, Any]:
    """Return the allocator's statistics, as far as they can be known."""
    simulated = DEVICES.find(device)
    memory = simulated.memory
    bytes_used = _stat(memory.allocated, memory.highest)
    counts = {"allocation": simulated.live, "active": simulated.live, **_block_counts(memory)}
    return {
        **dict.fromkeys(("allocated_bytes", "active_bytes", "requested_bytes"), bytes_used),
        "reserved_bytes": _stat(memory.reserved, memory.highest_reserved),
        **{name: _stat(count, count) for name, count in counts.items()},
        **dict.fromkeys(("oversize_allocations", "oversize_segments"), _stat(0, 0)["all"]),
        "num_alloc_retries": memory.retries,
        "num_ooms": memory.failures,
        **dict.fromkeys(("num_sync_all_streams", "num_oom_rejections"), 0),
        "num_device_alloc": memory.segments_made,
        "num_device_free": memory.segments_freed,
        "max_split_size": -1,  # of blocks that may be split: any
        "reserved_bytes_by_private_pools": {},
    }


def empty_cache() -> None:
    for device in DEVICES.simulated:
        device.memory.release()


def memory_info(device: int | None = None) -> tuple[int, int]:
    """Free and total bytes of a device; without a limit a program may hold more than there is."""
    simulated = DEVICES.find(device)
    return max(simulated.total - simulated.memory.reserved, 0), simulated.total


def set_fraction(fraction: float, device: int) -> None:
    simulated = DEVICES.find(device)
    simulated.set_limit(int(fraction * simulated.total))


def fraction(device: int) -> float:
    simulated = DEVICES.find(device)
    limit = simulated.memory.limit
    return 1.0 if limit is None else limit / simulated.total


def snapshot(*_: Any) -> dict[str, Any]:
    """Return a snapshot for pytorch.org/memory_viz, of which nothing is known: a report draws the memory."""
    return {"segments": [], "device_traces": [[] for _ in DEVICES.simulated]}


def _block_counts(memory: Any) -> dict[str, int]:
    segments = [blocks for _, blocks in memory.segments()]
    split = [block.size for blocks in segments for block in blocks if block.free and len(blocks) > 1]
    return {"segment": len(segments), "inactive_split": len(split), "inactive_split_bytes": sum(split)}


def _stat(current: int, peak: int) -> dict[str, dict[str, int]]:
    """One entry of the allocator's statistics, all of it in the large pool."""
    all_ = {"current": current, "peak": peak, "allocated": current, "freed": 0}
    return {"all": all_, "large_pool": all_, "small_pool": dict.fromkeys(all_, 0)}


def alive(device: torch.device) -> Alive | None:
    """Return what lives on a simulated device."""
    simulated = DEVICES.by_device.get(device)
    if simulated is None:
        return None
    memory = simulated.memory
    sums = (memory.limit or 0, memory.reserved, memory.allocated)
    return Alive(device, simulated.refused, *sums, alive_on(simulated), memory.highest)


_SHARED: Final[dict[str, object]] = {
    "nothing": returning(None),
    "count": lambda: len(DEVICES.simulated),
    "current": lambda: DEVICES.current,
    "set_current": DEVICES.set_current,
    "exchange": _exchange,
    "memory_stats": memory_stats,
    "reset_peak": lambda device: DEVICES.find(device).memory.reset(),
    "empty_cache": empty_cache,
    "set_fraction": set_fraction,
    "accelerator": lambda: torch.device("cuda"),
}
"""What answers several names, by what the inventory calls it."""
_NAMES: Final[dict[str, object]] = {
    "_has_cuda": True,
    "_cuda_isInBadFork": _is_in_bad_fork,
    "_cuda_hasPrimaryContext": lambda index: DEVICES.find(index).memory.highest > 0,
    "_cuda_canDeviceAccessPeer": returning(True),
    "_cuda_getArchFlags": returning("sm_90"),
    "_cuda_getMemoryFraction": fraction,
    "_cuda_getAllocatorBackend": returning("native"),
    "_cuda_memorySnapshot": snapshot,
    "_cuda_get_sync_debug_mode": lambda: WAITS.level,
    "_cuda_set_sync_debug_mode": _set_sync_debug_mode,
    "_cuda_get_cudnn_benchmark_limit": returning(10),
    "_accelerator_isAllocatorInitialized": returning(True),
    "_accelerator_getMemoryInfo": memory_info,
    "_accelerator_getDeviceCapability": lambda index: {"supported_dtypes": set()},
}


def forget_initialisation() -> None:
    """Make torch's C++ ask for CUDA again when a device is next named.

    It remembers for the life of the process that `torch.cuda._lazy_init` went well. Without this, a tensor made with
    `device="cuda"` after a simulation fails in the dispatcher instead of saying "Torch not compiled with CUDA enabled".
    """
    library = Path(torch.__file__).parent / "lib" / "libtorch_python.so"
    try:
        reset = ctypes.PyDLL(str(library))._ZN5torch5utils24set_requires_device_initEN3c1010DeviceTypeEb
    except (OSError, AttributeError):
        return  # another platform's name for it: only the words of that error differ
    reset(ctypes.c_int8(1), ctypes.c_bool(True))  # c10::DeviceType::CUDA
