"""What `fixing` offers to the kernel."""

from typing import Final

from devtrace.features import Feature

FEATURE: Final[Feature] = {
    "command": {"fix": "devtrace.fixing.command:COMMAND"},
    "run": {"values": "devtrace.fixing.captured_locals:ValuesOfRun"},
    "notebook": {"fix": "devtrace.fixing.notebooks.session:FixOfSession"},
}
