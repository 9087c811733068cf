"""Devices of the simulation that runs: how many, which is current in this thread, and which one a program asks for.

DEVICES.resolve("cuda")         device(type='cuda', index=0)
DEVICES.find(1)                 what is counted on cuda:1
"""

import threading
from typing import Any, Final

import torch

from devtrace.runtime.device_spec import MOST, count_of, limit_of
from devtrace.runtime.quiet import Quiet
from devtrace.simulation.allocation.shares import SimulatedDevice as SimulatedDevice

CPU: Final = torch.device("cpu")
TO_HOST: Final = torch.device("cpu", 0)
"""Our own `.to` asks for this when a tensor shall go to the host. C++ says `cpu` for a CPU tensor, without an index."""
TOTAL_MEMORY: Final = 16 << 30
_Device = torch.device  # the class itself: while a simulation runs, `torch.device` is ours
# The same in every simulation: a tensor that outlives one is on its device again in the next.
_ALL: Final = [SimulatedDevice(_Device("cuda", index), index) for index in range(MOST)]


class Devices:
    """Finds the SimulatedDevice for `cuda`, `cuda:1` or `1`; without a simulation there is none.

    `are_one`: all devices and the host are one memory, which refuses no mix: the reference of a proof.
    """

    spec: str | int
    simulated: list[SimulatedDevice]
    by_device: dict[torch.device, SimulatedDevice]
    are_beside_real_ones: bool

    def __init__(self) -> None:
        self.end()

    def begin(self, spec: str | int, *, are_one: bool) -> None:
        self.spec, self.are_one = spec, are_one
        self.simulated = _ALL[: count_of(spec)]
        self.by_device = {_Device("cuda", device.index): device for device in self.simulated}
        self.are_beside_real_ones = torch.cuda.is_available()
        for device in self.simulated:
            device.begin(TOTAL_MEMORY, limit_of(spec))

    def end(self) -> None:
        self.are_one = False
        self.by_device = {}
        self.simulated = []
        self._local = threading.local()
        self.refusal = ""  # what CUDA says in a forked process whose parent has used it

    @property
    def current(self) -> int:
        return getattr(self._local, "index", 0)

    def set_current(self, device: Any) -> None:
        """Answer `torch.cuda.set_device`, for which a negative index changes nothing."""
        index = self.index(device)
        if index >= 0:
            self._check_index(index)
            self._local.index = index

    def index(self, device: Any = None) -> int:
        """Return the index that a device, string, number or None (the current one) means."""
        if isinstance(device, int):
            return device
        index: int | None = None if device is None else _Device(device).index
        return self.current if index is None else index

    def find(self, device: Any = None) -> SimulatedDevice:
        index = self.index(device)
        self._check_index(index)
        return self.simulated[index % len(self.simulated)]

    def resolve(self, device: Any) -> torch.device:
        """Return the torch.device for "cuda" or 0, with an index, as C++ makes it before it looks for the device."""
        with Quiet():  # what makes a torch.device is a call that modes see
            parts = ("cuda", device) if isinstance(device, int) else (device,)
            target = device if isinstance(device, _Device) else _Device(*parts)
            return (self.find(target).device or target) if target.type == "cuda" else target

    def _check_index(self, index: int) -> None:
        if self.refusal:
            raise RuntimeError(self.refusal)
        if not 0 <= index < len(self.simulated) and not self.are_one:
            raise torch.AcceleratorError(
                "CUDA error: invalid device ordinal\nGPU device may be out of range, do you have enough GPUs?\n"
                "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below "
                "might be incorrect.\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
                "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
            )


DEVICES: Final = Devices()
