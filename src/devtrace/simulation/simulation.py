"""One simulation from start to stop: what is patched, in which order, and that all of it is put back."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from weakref import WeakSet

import torch

from devtrace.runtime import eager_paths, scripting, warned_lines
from devtrace.runtime.device_spec import count_of
from devtrace.runtime.mode_stack import push_below, take_out
from devtrace.runtime.patches import Patches
from devtrace.runtime.requirements import versions
from devtrace.runtime.torch_names import install_part, note_without
from devtrace.simulation import (
    ESSENTIAL,
    autocast,
    checks,
    compiling,
    cuda_only,
    driver,
    expired_tensors,
    factories,
    generators,
    gradients,
    graphs,
    legacy_tensor_types,
    parallel,
    process_groups,
    remembered,
    storages,
    streams,
    tensors,
    threads,
    triton,
    wider,
    wrappers,
)
from devtrace.simulation.devices import Devices
from devtrace.simulation.mode import SimulationMode
from devtrace.simulation.storage_tags import HOST_TAG, SIMULATED, TAG
from devtrace.words.catalogue import sentence
from devtrace.words.errors import SimulateError

_active: Simulation | None = None


def active() -> Simulation | None:
    """Return the simulation that is running, if any."""
    return _active


class Simulation:
    """Pretended CUDA devices, from `start` (or `with`) to `stop`."""

    def __init__(self, spec: str | int, *, force: bool = False) -> None:
        self.count = count_of(spec)
        self.force = force
        self.devices = Devices(self.count)
        self._modes: WeakSet[SimulationMode] = WeakSet()
        self.kept_answers: list[str] = []  # functions that go on saying what they were told before
        self.left_out: dict[str, str] = {}  # parts that this torch does not bear, each with its fault
        self._undo = ExitStack()

    def start(self) -> Simulation:
        """From here on this process has CUDA devices."""
        global _active
        self._refuse()
        with ExitStack() as undo:
            _active = self
            undo.callback(_forget)
            self._install(undo)
            self._undo = undo.pop_all()
        return self

    def stop(self) -> None:
        """Put everything back; nothing happens if it has been."""
        if _active is self:
            self._undo.close()

    def __enter__(self) -> Simulation:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def __repr__(self) -> str:
        """Say what it does, or how it begins: a cell that ends with it shows this."""
        devices = [f"cuda:{index}" for index in range(self.count)]
        state = "simulation.running" if _active is self else "simulation.not-begun"
        return f"<simulate: {sentence(state, devices=devices, count=self.count)}>"

    @staticmethod
    def device_of(tensor: torch.Tensor) -> torch.device:
        """Return `tensor.device`, without an attribute lookup."""
        return tensors.device(tensor)

    def _refuse(self) -> None:
        if _active is not None:
            raise SimulateError.of("simulate-nested")
        self._real = torch.cuda.is_available()
        if self._real and not self.force:
            raise SimulateError.of("simulate-real-cuda", count=torch.cuda.device_count())

    def _install(self, undo: ExitStack) -> None:
        """Patch all of it; undone in reverse order: the mode, then the tensors, then the names."""
        devices = self.devices
        undo.callback(remembered.forget)
        undo.callback(driver.forget_initialisation)
        patches = Patches(always_restore=True)
        undo.callback(patches.undo)
        undo.callback(expired_tensors.expire_all, devices.simulated)
        patches.set(torch.UntypedStorage, TAG, HOST_TAG)
        for simulated in devices.simulated:
            simulated.begin()
        SIMULATED.update((each.device, each) for each in devices.simulated if each.device is not None)
        undo.callback(SIMULATED.clear)
        expired_tensors.revive(devices.simulated)
        for part, install in self._parts(patches).items():
            fault = install_part(part, install, patches, undo)
            if fault and part in ESSENTIAL:
                raise SimulateError.of("simulate-torch", part=part, fault=fault, **versions())
            self.left_out |= {part: fault} if fault else {}
        if "process_groups" in self.left_out and "WORLD_SIZE" in os.environ:  # a rank may be recorded by nobody
            note = note_without("process_groups", self.left_out["process_groups"])
            sys.stderr.write(f"devtrace: {note}\n")
        undo.callback(self._retire_modes)
        mode = self._new_mode()
        push_below(mode)
        undo.callback(take_out, mode)
        self.kept_answers = remembered.forget()

    def _parts(self, patches: Patches) -> dict[str, Callable[[ExitStack], object]]:
        """Return what installs each part, in order: `scripting` looks at all that was replaced before it."""
        devices = self.devices
        return {
            "tensors": lambda _: tensors.install(patches, devices.resolve),
            "storages": lambda _: storages.install(patches, devices),
            "factories": lambda _: factories.install(patches, devices.resolve),
            "driver": lambda _: driver.install(patches, devices),
            "streams": lambda _: streams.install(patches, devices),
            "generators": lambda _: generators.install(patches, devices),
            "threads": lambda _: threads.install(patches, self._new_mode),
            "mode": _lift_only_cpu_tensors,
            "gradients": lambda _: gradients.install(patches),
            "graphs": lambda _: graphs.install(patches),
            "parallel": lambda _: parallel.install(patches),
            "process_groups": lambda undo: process_groups.install(patches, undo),
            "checks": lambda _: checks.install(patches),
            "eager_paths": lambda _: eager_paths.install(patches),
            "wider": lambda _: wider.install(patches),
            "legacy_tensor_types": lambda _: legacy_tensor_types.install(patches, devices),
            "autocast": lambda undo: autocast.install(patches, undo),
            "compiling": lambda undo: compiling.install(patches, undo),
            "cuda_only": lambda _: cuda_only.install(patches),
            "wrappers": lambda undo: wrappers.install(patches, undo, devices.resolve, real=self._real),
            "warned_lines": lambda _: warned_lines.install(patches),
            "triton": lambda undo: triton.install(patches, undo),
            "scripting": lambda _: scripting.install(patches),
        }

    def _new_mode(self) -> SimulationMode:
        mode = SimulationMode(self.devices.find)
        self._modes.add(mode)
        return mode

    def _retire_modes(self) -> None:
        """A thread that outlives the simulation keeps its mode, which no longer does anything."""
        for mode in self._modes:
            mode.retire()


def _lift_only_cpu_tensors(undo: ExitStack) -> None:
    """Let `torch.tensor(..., device=)` copy where the mode sees it."""
    torch._C._set_only_lift_cpu_tensors(True)
    undo.callback(torch._C._set_only_lift_cpu_tensors, False)


def _forget() -> None:
    global _active
    _active = None


def simulate(devices: str | int, *, force: bool = False) -> Simulation:
    """Pretend that this machine has CUDA devices, "cuda:2" or 2 of them, named cuda:0 and cuda:1.

    A context manager, with start() and stop() for a whole process.
    """
    return Simulation(devices, force=force)
