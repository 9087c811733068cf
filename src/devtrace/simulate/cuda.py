"""`torch.cuda`: the functions that programs ask for their devices, answered by the simulation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from devtrace.simulate.devices import Devices
from devtrace.simulate.patches import Patches


def install(patches: Patches, devices: Devices) -> None:
    surface: dict[str, Callable[..., Any]] = {
        "is_available": lambda: True,
        "device_count": lambda: len(devices.homes),
        "current_device": lambda: devices.current,
        "_lazy_init": lambda: None,
        "is_initialized": lambda: True,
        "init": lambda: None,
        "synchronize": lambda device=None: None,
        "empty_cache": lambda: None,
        "set_device": devices.set_current,
        "is_bf16_supported": lambda including_emulation=True: True,
        "is_current_stream_capturing": lambda: False,
        "manual_seed": lambda seed: None,
        "manual_seed_all": lambda seed: None,
        "memory_allocated": lambda device=None: devices.home(device).allocated,
        "max_memory_allocated": lambda device=None: devices.home(device).peak,
        "get_device_name": lambda device=None: "Simulated CUDA device (devtrace)",
        "get_device_capability": lambda device=None: (9, 0),
    }
    for name, function in surface.items():
        patches.set(torch.cuda, name, function)
    patches.set(torch._C, "_cuda_isCurrentStreamCapturing", lambda: False)
