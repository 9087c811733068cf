"""Pretended devices, where this installation has them: who wants some asks here.

with simulate("cuda:2"): ...
"""

import os
from contextlib import AbstractContextManager
from typing import Any, Protocol, Self

from devtrace.features import find
from devtrace.runtime.device_spec import ONE_DEVICE
from devtrace.words.errors import SimulateError


class Simulation(AbstractContextManager[Any, None], Protocol):
    """Pretended CUDA devices, from `start` (or `with`) to `stop`."""

    spec: str | int

    def start(self) -> Self: ...
    def stop(self) -> None: ...
    def join(self) -> None: ...


def simulate(devices: str | int, *, force: bool = False, one_device: bool = False) -> Simulation:
    """Pretend that this machine has CUDA devices: `simulate("cuda:2")` or `simulate(2)` adds cuda:0 and cuda:1.

    "cuda:2,24GB" gives each device 24 GB of memory. With `force=True`, simulate even on a machine with a GPU. With
    `one_device=True`, an op whose inputs are on different devices does not fail.
    """
    kind = find("devices", "cuda")
    if kind is None:
        raise SimulateError.of("simulate-absent", given=devices)
    simulation: Simulation = kind(devices, force=force, one_device=one_device or ONE_DEVICE in os.environ)
    return simulation
