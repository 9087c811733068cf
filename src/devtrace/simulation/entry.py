"""Pretended devices, on a torch that bears them: what comes in by another door is not asked for that."""

import torch  # noqa: F401 (first: who waits for it to be imported needs modules that are below, whole)

from devtrace.runtime.requirements import versions
from devtrace.runtime.torch_names import fault_of
from devtrace.simulation import ESSENTIAL
from devtrace.words.errors import SimulateError

for part in filter(fault_of, ESSENTIAL):
    raise SimulateError.of("simulate-torch", part=part, fault=fault_of(part), **versions())

from devtrace.simulation.simulation import Simulation as Simulation  # noqa: E402 (on another torch it is not whole)
