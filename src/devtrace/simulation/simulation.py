"""One simulation from start to stop: what is patched, in which order, and that all of it is put back."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from functools import partial
from importlib import import_module
from types import TracebackType
from typing import Final

import torch

from devtrace.runtime.device_spec import count_of
from devtrace.runtime.mode_stack import at_the_bottom
from devtrace.runtime.patches import Patches
from devtrace.runtime.requirements import versions
from devtrace.runtime.torch_names import install_part, note_without
from devtrace.simulation import ESSENTIAL, cached_gpu_checks, driver, expired_tensors
from devtrace.simulation.devices import DEVICES
from devtrace.simulation.mode import new_mode
from devtrace.simulation.storage_tags import HOST_TAG, TAG
from devtrace.words.catalogue import sentence
from devtrace.words.errors import SimulateError

_active: Simulation | None = None


def active() -> Simulation | None:
    """Return the simulation that is running, if any."""
    return _active


class Simulation:
    """Pretended CUDA devices, from `start` (or `with`) to `stop`."""

    def __init__(self, spec: str | int, *, force: bool = False, one_device: bool = False) -> None:
        self.spec, self.count = spec, count_of(spec)
        self.force = force
        self.one_device = one_device
        self.kept_answers: list[str] = []  # functions that go on saying what they were told before
        self.left_out: dict[str, str] = {}  # parts that this torch does not bear, each with its fault
        self._undo = ExitStack()

    def start(self) -> Simulation:
        """From here on this process has CUDA devices."""
        global _active
        self._refuse_start()
        with ExitStack() as undo:
            _active = self
            undo.callback(_deactivate)
            self._install(undo)
            self._undo = undo.pop_all()
        return self

    def stop(self) -> None:
        """Put everything back, unless this simulation has been stopped already."""
        if _active is self:
            self._undo.close()

    def join(self) -> None:
        """Make one memory of all devices from here on, as large as the program wants it."""
        DEVICES.are_one = True
        for device in DEVICES.simulated:
            device.set_limit(sys.maxsize)

    def __enter__(self) -> Simulation:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    def __repr__(self) -> str:
        """Say what it does, or how it begins: a cell that ends with it shows this."""
        devices = [f"cuda:{index}" for index in range(self.count)]
        state = "simulation.running" if _active is self else "simulation.not-begun"
        return f"<simulate: {sentence(state, devices=devices, count=self.count)}>"

    def _refuse_start(self) -> None:
        if _active is not None:
            raise SimulateError.of("simulate-nested")
        if torch.cuda.is_available() and not self.force:
            raise SimulateError.of("simulate-real-cuda", count=torch.cuda.device_count())

    def _install(self, undo: ExitStack) -> None:
        """Patch all of it; undone in reverse order: the mode, then the tensors, then the names."""
        DEVICES.begin(self.spec, are_one=self.one_device)
        undo.callback(DEVICES.end)
        undo.callback(cached_gpu_checks.forget)
        undo.callback(driver.forget_initialisation)
        patches = Patches(always_restore=True)
        undo.callback(patches.undo)
        undo.callback(expired_tensors.expire_all)
        patches.set(torch.UntypedStorage, TAG, HOST_TAG)
        expired_tensors.revive()
        for part in _PARTS:
            fault = install_part(part, partial(_install_one, part, patches), patches, undo)
            if fault and part in ESSENTIAL:
                raise SimulateError.of("simulate-torch", part=part, fault=fault, **versions())
            self.left_out |= {part: fault} if fault else {}
        if "process_groups" in self.left_out and "WORLD_SIZE" in os.environ:  # a rank may be recorded by nobody
            note = note_without("process_groups", self.left_out["process_groups"])
            sys.stderr.write(f"devtrace: {note}\n")
        undo.enter_context(at_the_bottom(new_mode()))
        self.kept_answers = cached_gpu_checks.forget()


_PARTS: Final = {
    name.rpartition(".")[2]: import_module(f"devtrace.{name}")
    for name in (
        *(f"simulation.{part}" for part in ESSENTIAL if part != "runtime"),
        "simulation.gradients", "simulation.cuda_features.parallel", "simulation.process_groups",
        "simulation.checks", "runtime.eager_paths", "simulation.upcast_ops", "simulation.legacy_tensor_types",
        "simulation.autocast", "simulation.compiling", "simulation.cuda_only", "simulation.wrappers",
        "runtime.warned_lines", "runtime.profiles", "simulation.children", "simulation.sharing",
        "simulation.cuda_features.elements", "runtime.scripting",
        "simulation.cuda_features.scripts",
    )
}  # fmt: skip
"""In the order in which they are installed; `scripting` looks at all that came before it."""
_UNDO: Final = ("mode", "driver", "process_groups", "autocast", "compiling", "cuda_only", "wrappers")
"""Parts that have more to undo than replaced names."""


def _install_one(part: str, patches: Patches, undo: ExitStack) -> None:
    _PARTS[part].install(patches, *((undo,) if part in _UNDO else ()))


def _deactivate() -> None:
    global _active
    _active = None
