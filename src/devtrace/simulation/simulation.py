"""One simulation from start to stop: what is patched, in which order, and that all of it is put back."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from functools import partial
from types import ModuleType, TracebackType
from typing import Any, Final
from weakref import WeakSet

import torch

from devtrace.runtime import eager_paths, profiles, scripting, warned_lines
from devtrace.runtime.device_spec import count_of, limit_of
from devtrace.runtime.mode_stack import push_below, take_out
from devtrace.runtime.patches import Patches
from devtrace.runtime.requirements import versions
from devtrace.runtime.torch_names import install_part, note_without
from devtrace.simulation import (
    ESSENTIAL,
    autocast,
    cached_gpu_checks,
    checks,
    children,
    compiling,
    cuda_only,
    driver,
    expired_tensors,
    factories,
    generators,
    gradients,
    graphs,
    legacy_tensor_types,
    mode,
    process_groups,
    sharing,
    storages,
    streams,
    tensors,
    triton,
    upcast_ops,
    wrappers,
)
from devtrace.simulation.cuda_features import elements, exchange, parallel, scripts
from devtrace.simulation.devices import Devices
from devtrace.simulation.mode import RetiredMode, SimulationMode
from devtrace.simulation.storage_tags import HOST_TAG, MEMORY, SIMULATED, TAG
from devtrace.words.catalogue import sentence
from devtrace.words.errors import SimulateError

_active: Simulation | None = None


def active() -> Simulation | None:
    """Return the simulation that is running, if any."""
    return _active


class Simulation:
    """Pretended CUDA devices, from `start` (or `with`) to `stop`."""

    def __init__(self, spec: str | int, *, force: bool = False, one_device: bool = False) -> None:
        self.spec, self.count, self.limit = spec, count_of(spec), limit_of(spec)
        self.force = force
        self.one_device = one_device
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

    def join(self) -> None:
        """Make one memory of all devices from here on, as large as the program wants it."""
        MEMORY.is_one = True
        for each in self.devices.simulated:
            each.allow(sys.maxsize)

    def __enter__(self) -> Simulation:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def __repr__(self) -> str:
        """Say what it does, or how it begins: a cell that ends with it shows this."""
        devices = [f"cuda:{index}" for index in range(self.count)]
        state = "simulation.running" if _active is self else "simulation.not-begun"
        return f"<simulate: {sentence(state, devices=devices, count=self.count)}>"

    def _refuse(self) -> None:
        if _active is not None:
            raise SimulateError.of("simulate-nested")
        self._real = torch.cuda.is_available()
        if self._real and not self.force:
            raise SimulateError.of("simulate-real-cuda", count=torch.cuda.device_count())

    def _install(self, undo: ExitStack) -> None:
        """Patch all of it; undone in reverse order: the mode, then the tensors, then the names."""
        devices = self.devices
        MEMORY.is_one = self.one_device
        undo.callback(setattr, MEMORY, "is_one", False)
        undo.callback(cached_gpu_checks.forget)
        undo.callback(driver.forget_initialisation)
        patches = Patches(always_restore=True)
        undo.callback(patches.undo)
        undo.callback(expired_tensors.expire_all, devices.simulated)
        patches.set(torch.UntypedStorage, TAG, HOST_TAG)
        for simulated in devices.simulated:
            simulated.begin(driver.TOTAL_MEMORY, self.limit)
        SIMULATED.update((each.device, each) for each in devices.simulated if each.device is not None)
        undo.callback(SIMULATED.clear)
        expired_tensors.revive(devices.simulated)
        for module, given in self._parts().items():
            part = module.__name__.rpartition(".")[2]
            fault = install_part(part, partial(_install_with, module, patches, given), patches, undo)
            if fault and part in ESSENTIAL:
                raise SimulateError.of("simulate-torch", part=part, fault=fault, **versions())
            self.left_out |= {part: fault} if fault else {}
        if "process_groups" in self.left_out and "WORLD_SIZE" in os.environ:  # a rank may be recorded by nobody
            note = note_without("process_groups", self.left_out["process_groups"])
            sys.stderr.write(f"devtrace: {note}\n")
        undo.callback(self._retire_modes)
        own_mode = self._new_mode()
        push_below(own_mode)
        undo.callback(take_out, own_mode)
        self.kept_answers = cached_gpu_checks.forget()

    def _parts(self) -> dict[ModuleType, tuple[Any, ...]]:
        """Return the parts in their order, each with what it asks for; `scripting` looks at all that came before it."""
        devices, resolve = self.devices, self.devices.resolve
        return {
            tensors: (resolve,), storages: (devices,), factories: (resolve,), driver: (devices,), streams: (devices,),
            generators: (devices,), mode: (self._new_mode,), gradients: (), graphs: (), parallel: (),
            process_groups: (), checks: (), eager_paths: (), upcast_ops: (), legacy_tensor_types: (devices,),
            autocast: (), compiling: (), cuda_only: (), wrappers: (resolve, self._real), warned_lines: (),
            profiles: (), triton: (), exchange: (),
            children: (self.spec, self.one_device, devices, lambda: list(self._modes)),
            sharing: (devices,), elements: (), scripting: (), scripts: (),
        }  # fmt: skip

    def _new_mode(self) -> SimulationMode:
        made = SimulationMode(self.devices.find)
        self._modes.add(made)
        return made

    def _retire_modes(self) -> None:
        """A thread that outlives the simulation keeps its mode, which no longer does anything."""
        for each in self._modes:
            each.__class__ = RetiredMode


def _install_with(module: ModuleType, patches: Patches, given: tuple[Any, ...], undo: ExitStack) -> None:
    """Install a part; those of `_UNDO` have more to undo than replaced names."""
    module.install(patches, *((undo,) if module in _UNDO else ()), *given)


_UNDO: Final = (mode, driver, process_groups, autocast, compiling, wrappers, triton)


def _forget() -> None:
    global _active
    _active = None
