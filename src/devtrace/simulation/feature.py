"""What `simulation` offers to the kernel."""

from typing import Final

from devtrace.features import Feature

FEATURE: Final[Feature] = {
    "function": {"simulate": "devtrace.simulation.simulation:simulate"},
}
