"""One simulation from start to stop: what is patched, in which order, and that all of it is put back."""

from __future__ import annotations

from types import TracebackType

import torch

from devtrace.errors import SimulateError
from devtrace.simulate import driver, factories, generators, parallel, storages, streams, tensors, threads
from devtrace.simulate.devices import Devices, count_of
from devtrace.simulate.homes import HOST_TAG, TAG
from devtrace.simulate.mode import SimulationMode
from devtrace.simulate.patches import Patches
from devtrace.simulate.stack import push_below, take_out

_active: Simulation | None = None


def active() -> Simulation | None:
    """The simulation that is running, if any."""
    return _active


class Simulation:
    """Pretended CUDA devices, from `start` (or `with`) to `stop`."""

    def __init__(self, spec: str, *, force: bool = False) -> None:
        self.count = count_of(spec)
        self.force = force
        self.devices = Devices(self.count)
        self._patches = Patches()
        self._mode: SimulationMode | None = None

    def start(self) -> Simulation:
        """From here on this process has CUDA devices."""
        global _active
        self._refuse()
        _active = self
        try:
            self._install()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Put everything back; nothing happens if it has been."""
        global _active
        if _active is not self:
            return
        _active = None
        if self._mode is not None:
            take_out(self._mode)
            self._mode = None
        torch._C._set_only_lift_cpu_tensors(False)
        driver.forget_initialisation()
        self._patches.undo()

    def __enter__(self) -> Simulation:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    @staticmethod
    def device_of(tensor: torch.Tensor) -> torch.device:
        """What `tensor.device` says, without an attribute lookup."""
        return tensors.device(tensor)

    def _refuse(self) -> None:
        if _active is not None:
            raise SimulateError(
                "simulate-nested",
                "a second simulation",
                "only one can run at a time",
                "stop the first one before",
            )
        if torch.cuda.is_available() and not self.force:
            raise SimulateError(
                "simulate-real-cuda",
                f"a machine with {torch.cuda.device_count()} real CUDA devices",
                "a simulation would hide them",
                "run without simulate, or pass force=True",
            )

    def _install(self) -> None:
        self._patches.set(torch.UntypedStorage, TAG, HOST_TAG)
        tensors.install(self._patches, self.devices.resolve)
        storages.install(self._patches, self.devices)
        factories.install(self._patches, self.devices.resolve)
        driver.install(self._patches, self.devices)
        streams.install(self._patches, self.devices)
        generators.install(self._patches, self.devices)
        parallel.install(self._patches)
        threads.install(self._patches, self._new_mode)
        torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(..., device=) copies where the mode sees it
        self._mode = self._new_mode()
        push_below(self._mode)

    def _new_mode(self) -> SimulationMode:
        return SimulationMode(self.devices.home)
