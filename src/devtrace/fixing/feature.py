"""What `fixing` offers to the kernel."""

from typing import Final

from devtrace.features import Feature

FEATURE: Final[Feature] = {
    "command": {"fix": "devtrace.fixing.command:COMMAND"},
    "trial": {"test": "devtrace.fixing.pytest_trial:tried"},
    "notebook": {"fix": "devtrace.fixing.notebooks.session:FixOfSession"},
}
