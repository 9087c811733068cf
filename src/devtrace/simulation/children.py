"""Child processes: one that is spawned simulates what its parent does, a forked one may not use what its parent used.

A spawned child reads its parent's path before anything else; what it unpickles there begins the simulation, ahead of
the program's own modules. Without devtrace in its path it runs as it would.
"""

import os
import sys
from collections.abc import Callable
from multiprocessing import spawn
from typing import Any, Final

import torch

from devtrace.runtime import forks
from devtrace.runtime.patches import Patches
from devtrace.simulation.devices import DEVICES
from devtrace.simulation.handlers import common_owner
from devtrace.simulation.mode import MODES, SimulationMode

FORKED: Final = (
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the 'spawn' start "
    "method"
)
_BEGIN: Final = """
import sys
sys.path[:] = {path!r}
try:
    from devtrace.simulation.simulation import Simulation
except ImportError:
    pass
else:
    Simulation({spec!r}, force=True, one_device={one_device}).start()
"""


class _SimulationStarter:
    """Pickled for a child, it is code that begins a simulation there."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, dict[str, Any]]]:
        return exec, (_BEGIN.format(path=sys.path, spec=DEVICES.spec, one_device=DEVICES.are_one), {})


class ForkedMode(SimulationMode):
    """A mode in a process that was forked after its parent had used a device."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        owner = common_owner((*args, *(kwargs or {}).values()))
        if owner is not None and owner.device is not None:
            raise torch.AcceleratorError("CUDA error: initialization error\n")
        return super().__torch_dispatch__(func, types, args, kwargs)


def install(patches: Patches) -> None:
    patches.wrap(spawn, "get_preparation_data", lambda get, name: {**get(name), "devtrace": _SimulationStarter()})


def _refuse_in_a_fork() -> None:
    """Refuse what the parent has used; without a simulation there is no mode."""
    if MODES and not forks.is_ours() and any(device.memory.highest for device in DEVICES.simulated):
        DEVICES.refusal = FORKED
        for mode in list(MODES):
            mode.__class__ = ForkedMode


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_refuse_in_a_fork)
