"""What `simulation` offers to the kernel."""

from typing import Final

from devtrace.features import Feature

FEATURE: Final[Feature] = {
    "devices": {"cuda": "devtrace.simulation.entry:Simulation"},
}
