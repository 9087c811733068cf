"""The part of `torch._C` that only a CUDA build has, so that `torch.cuda` and `torch.accelerator` work as they are.

torch's own Python functions stay: they find a driver that knows how many devices there are, and their memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from devtrace.runtime.patches import Patches
from devtrace.simulation.devices import Devices
from devtrace.simulation.storage_tags import SimulatedDevice

TOTAL_MEMORY = 16 << 30
CAPABILITY = (9, 0)
CUDA_VERSION = "13.0"
_BLOCK = 2 << 20  # torch's allocator takes memory from the driver in blocks of this size


class Driver:
    """Answers for `torch._C._cuda_*` and `torch._C._accelerator_*`."""

    def __init__(self, devices: Devices) -> None:
        self.devices = devices
        self.sync_debug_mode = 0

    def exchange(self, index: int) -> int:
        """Make another device current, and return which one was."""
        before = self.devices.current
        self.devices.set_current(index)
        return before if index >= 0 else -1

    def memory_stats(self, device: int) -> dict[str, Any]:
        """Return the part of the allocator's statistics that can be known: bytes in use and reserved."""
        found = self.devices.find(device)
        used, reserved = _stat(found.allocated, found.peak), _stat(_reserved(found), _reserved(found))
        return {
            **dict.fromkeys(("allocated_bytes", "active_bytes", "requested_bytes"), used),
            **dict.fromkeys(("reserved_bytes",), reserved),
            **dict.fromkeys(("allocation", "segment", "active", "inactive_split", "inactive_split_bytes"), _stat(0, 0)),
            "oversize_allocations": _stat(0, 0)["all"],
            "oversize_segments": _stat(0, 0)["all"],
            **dict.fromkeys(("num_alloc_retries", "num_ooms", "num_sync_all_streams"), 0),
        }

    def reset_peak(self, device: int) -> None:
        found = self.devices.find(device)
        found.peak = found.allocated

    def memory_info(self, device: int | None = None) -> tuple[int, int]:
        """Free and total bytes of a device."""
        return TOTAL_MEMORY - _reserved(self.devices.find(device)), TOTAL_MEMORY

    def properties(self, device: int) -> SimpleNamespace:
        """`torch.cuda.get_device_properties`."""
        self.devices.find(device)
        return SimpleNamespace(
            name="Simulated CUDA device",
            major=CAPABILITY[0],
            minor=CAPABILITY[1],
            total_memory=TOTAL_MEMORY,
            multi_processor_count=132,
            max_threads_per_multi_processor=2048,
            warp_size=32,
            regs_per_multiprocessor=65536,
            max_threads_per_block=1024,
            shared_memory_per_block=49152,
            shared_memory_per_block_optin=232448,
            clock_rate=1980000,
            memory_clock_rate=2619000,
            memory_bus_width=5120,
            shared_memory_per_multiprocessor=233472,
            L2_cache_size=50 << 20,
            is_integrated=0,
            is_multi_gpu_board=0,
            gcnArchName="Simulated CUDA device",
            uuid=f"devtrace-simulated-{device}",
            pci_bus_id=device,
            pci_device_id=0,
            pci_domain_id=0,
        )

    def accelerator(self) -> torch.device:
        return torch.device("cuda")


def _stat(current: int, peak: int) -> dict[str, dict[str, int]]:
    """One entry of the allocator's statistics, all of it in the large pool."""
    all_ = {"current": current, "peak": peak, "allocated": current, "freed": 0}
    return {"all": all_, "large_pool": all_, "small_pool": dict.fromkeys(all_, 0)}


def _reserved(device: SimulatedDevice) -> int:
    return -(-device.peak // _BLOCK) * _BLOCK


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Do nothing: no work to wait for, no cache to free."""


def install(patches: Patches, devices: Devices) -> None:
    """Give `torch._C` and `torch.cuda` what they have on a machine with these devices."""
    driver = Driver(devices)
    for name, function in _driver_names(driver).items():
        patches.set(torch._C, name, function)
    for name, value in _cuda_globals(driver).items():
        patches.set(torch.cuda, name, value)
    patches.set(torch.version, "cuda", torch.version.cuda or CUDA_VERSION)
    patches.set(torch.backends.cudnn, "is_available", lambda: True)
    # Says that a weight need not be laid out for cuDNN, and does not warn that this build lacks it.
    patches.set(torch.backends.cudnn, "is_acceptable", lambda tensor: False)
    patches.set(torch.cuda.nccl, "is_available", lambda tensors: False)


def _driver_names(driver: Driver) -> dict[str, object]:
    devices = driver.devices
    count: Callable[[], int] = lambda: len(devices.simulated)  # noqa: E731 (used twice)
    current: Callable[[], int] = lambda: devices.current  # noqa: E731
    return {
        "_has_cuda": True,
        "_cuda_init": _nothing,
        "_cuda_isInBadFork": lambda: False,
        "_cuda_getDeviceCount": count,
        "_cuda_getDevice": current,
        "_cuda_setDevice": devices.set_current,
        "_cuda_exchangeDevice": driver.exchange,
        "_cuda_maybeExchangeDevice": driver.exchange,
        "_cuda_hasPrimaryContext": lambda index: devices.find(index).peak > 0,
        "_cuda_canDeviceAccessPeer": lambda one, other: True,
        "_cuda_getCompiledVersion": getattr(torch._C, "_cuda_getCompiledVersion", lambda: 13000),
        "_cuda_getArchFlags": lambda: f"sm_{CAPABILITY[0]}{CAPABILITY[1]}",
        "_cuda_synchronize": _nothing,
        "_cuda_ipc_collect": _nothing,
        "_cuda_emptyCache": _nothing,
        "_cuda_clearCublasWorkspaces": _nothing,
        "_cuda_setMemoryFraction": _nothing,
        "_cuda_getMemoryFraction": lambda device: 1.0,
        "_cuda_getAllocatorBackend": lambda: "native",
        "_cuda_memoryStats": driver.memory_stats,
        "_cuda_memorySnapshot": lambda *args: {"segments": [], "device_traces": []},
        "_cuda_resetAccumulatedMemoryStats": _nothing,
        "_cuda_resetPeakMemoryStats": driver.reset_peak,
        "_cuda_get_sync_debug_mode": lambda: driver.sync_debug_mode,
        "_cuda_set_sync_debug_mode": lambda mode: setattr(driver, "sync_debug_mode", mode),
        "_cuda_get_cudnn_benchmark_limit": lambda: 10,
        "_cuda_set_cudnn_benchmark_limit": _nothing,
        "_get_accelerator": driver.accelerator,
        "_accelerator_getAccelerator": driver.accelerator,
        "_accelerator_getDeviceIndex": current,
        "_accelerator_setDeviceIndex": devices.set_current,
        "_accelerator_exchangeDevice": driver.exchange,
        "_accelerator_maybeExchangeDevice": driver.exchange,
        "_accelerator_hooks_device_count": count,
        "_accelerator_hooks_get_current_device": current,
        "_accelerator_hooks_set_current_device": devices.set_current,
        "_accelerator_hooks_exchange_device": driver.exchange,
        "_accelerator_hooks_maybe_exchange_device": driver.exchange,
        "_accelerator_synchronizeDevice": _nothing,
        "_accelerator_isAllocatorInitialized": lambda: True,
        "_accelerator_emptyCache": _nothing,
        "_accelerator_emptyHostCache": _nothing,
        "_accelerator_getDeviceStats": driver.memory_stats,
        "_accelerator_resetAccumulatedStats": _nothing,
        "_accelerator_resetPeakStats": driver.reset_peak,
        "_accelerator_getMemoryInfo": driver.memory_info,
        "_accelerator_getDeviceCapability": lambda index: {"supported_dtypes": set()},
    }


def _cuda_globals(driver: Driver) -> dict[str, object]:
    """Module globals of torch.cuda that its initialisation fills; `_initialized` keeps it from trying."""
    return {
        "_initialized": True,
        "_cached_device_count": len(driver.devices.simulated),
        "_is_in_bad_fork": lambda: False,
        "_exchange_device": driver.exchange,
        "_maybe_exchange_device": driver.exchange,
        "_get_device_properties": driver.properties,
        "_cudart": SimpleNamespace(
            cudaMemGetInfo=driver.memory_info,
            cudaGetErrorString=lambda code: f"CUDA error {code}",
            cudaError=SimpleNamespace(success=0),
            cudaProfilerStart=lambda: 0,
            cudaProfilerStop=lambda: 0,
            cudaHostRegister=lambda *args: 0,
            cudaHostUnregister=lambda *args: 0,
        ),
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
