"""The part of `torch._C` that only a CUDA build has, so that `torch.cuda` and `torch.accelerator` work as they are.

torch's own Python functions stay: they find a driver that knows how many devices there are, and their memory.
"""

import ctypes
import json
from contextlib import ExitStack
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from devtrace.runtime.observers import existing, knowing
from devtrace.runtime.patches import Patches
from devtrace.runtime.torch_names import replace, returning
from devtrace.simulation.allocation import answers, shares
from devtrace.simulation.devices import Devices
from devtrace.simulation.handlers import handlers
from devtrace.simulation.refusals import WAITS, show_waits

TOTAL_MEMORY = 16 << 30
CAPABILITY = (9, 0)
CUDA_VERSION = "13.0"


class Driver(answers.MemoryAnswers):
    """Answers for `torch._C._cuda_*` and `torch._C._accelerator_*`."""

    def __init__(self, devices: Devices) -> None:
        self.devices = devices

    def exchange(self, index: int) -> int:
        """Make another device current, and return which one was."""
        before = self.devices.current
        self.devices.set_current(index)
        return before if index >= 0 else -1

    def set_sync_debug_mode(self, level: int) -> None:
        show_waits(level)
        handlers.clear()

    def properties(self, device: int) -> SimpleNamespace:
        """`torch.cuda.get_device_properties`."""
        total = self.devices.find(device).total
        uuid = f"{_known('uuid')}{device:012}"
        return SimpleNamespace(**_known("properties"), total_memory=total, uuid=uuid, pci_bus_id=device)


def _known(what: str) -> Any:
    return json.loads(resources.files(__package__).joinpath("cuda_properties.json").read_text("utf-8"))[what]


def install(patches: Patches, undo: ExitStack, devices: Devices) -> None:
    """Give `torch._C` and `torch.cuda` what they have on a machine with these devices."""
    driver = Driver(devices)
    undo.callback(show_waits, 0)
    knowing.append(answers.alive)
    undo.callback(knowing.remove, answers.alive)
    existing.append(shares.blocks)
    undo.callback(existing.remove, shares.blocks)
    replace("driver", _shared_answers(driver), patches)
    for name, function in _driver_names(driver).items():
        patches.set(torch._C, name, function)
    for name, value in _cuda_globals(driver).items():
        patches.set(torch.cuda, name, value)
    patches.set(torch.version, "cuda", torch.version.cuda or CUDA_VERSION)
    patches.set(torch.backends.cudnn, "is_available", returning(True))
    # Says that a weight need not be laid out for cuDNN, and does not warn that this build lacks it.
    patches.set(torch.backends.cudnn, "is_acceptable", lambda tensor: False)
    patches.set(torch.cuda.nccl, "is_available", lambda tensors: False)


def _shared_answers(driver: Driver) -> dict[str, object]:
    """Return what answers several names, by what the inventory calls it."""
    return {
        "nothing": returning(None),
        "count": lambda: len(driver.devices.simulated),
        "current": lambda: driver.devices.current,
        "set_current": driver.devices.set_current,
        "exchange": driver.exchange,
        "memory_stats": driver.memory_stats,
        "reset_peak": lambda device: driver.devices.find(device).memory.reset(),
        "empty_cache": driver.empty_cache,
        "set_fraction": driver.set_fraction,
        "accelerator": lambda: torch.device("cuda"),
    }


def _preferred() -> dict[str, object]:
    """Return what keeps the libraries of CUDA's that a program prefers: here all compute alike."""
    linalg, blas = [torch._C._get_linalg_preferred_backend()], [torch._C._get_blas_preferred_backend()]
    return {
        "_get_linalg_preferred_backend": lambda: linalg[0],
        "_set_linalg_preferred_backend": lambda value: linalg.__setitem__(0, value),
        "_get_blas_preferred_backend": lambda: blas[0],
        "_set_blas_preferred_backend": lambda value: blas.__setitem__(0, value),
    }


def _driver_names(driver: Driver) -> dict[str, object]:
    devices = driver.devices
    return _preferred() | {
        "_has_cuda": True,
        "_cuda_isInBadFork": lambda: bool(devices.refusal),
        "_cuda_hasPrimaryContext": lambda index: devices.find(index).memory.highest > 0,
        "_cuda_canDeviceAccessPeer": lambda one, other: True,
        "_cuda_getCompiledVersion": getattr(torch._C, "_cuda_getCompiledVersion", lambda: 13000),
        "_cuda_getArchFlags": lambda: f"sm_{CAPABILITY[0]}{CAPABILITY[1]}",
        "_cuda_getMemoryFraction": driver.fraction,
        "_cuda_getAllocatorBackend": lambda: "native",
        "_cuda_memorySnapshot": driver.snapshot,
        "_cuda_get_sync_debug_mode": lambda: WAITS.level,
        "_cuda_set_sync_debug_mode": driver.set_sync_debug_mode,
        "_cuda_get_cudnn_benchmark_limit": lambda: 10,
        "_accelerator_isAllocatorInitialized": lambda: True,
        "_accelerator_getMemoryInfo": driver.memory_info,
        "_accelerator_getDeviceCapability": lambda index: {"supported_dtypes": set()},
    }


def _cuda_globals(driver: Driver) -> dict[str, object]:
    """Module globals of torch.cuda that its initialisation fills; `_initialized` keeps it from trying."""
    return {
        "_initialized": True,
        "_cached_device_count": len(driver.devices.simulated),
        "_is_in_bad_fork": lambda: bool(driver.devices.refusal),
        "_exchange_device": driver.exchange,
        "_maybe_exchange_device": lambda index: driver.exchange(index),  # torch._dynamo tells the two apart
        "_get_device_properties": driver.properties,
        "_cudart": SimpleNamespace(
            cudaMemGetInfo=driver.memory_info,
            cudaGetErrorString=lambda code: _known("errors").get(str(int(code)), "unrecognized error code"),
            cudaError=type("cudaError", (int,), {"success": 0}),
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
