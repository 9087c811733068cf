"""What `interchange` offers to the kernel."""

from typing import Final

from devtrace.features import Feature

FEATURE: Final[Feature] = {
    "function": {"diff": "devtrace.interchange.diff:diff"},
    "command": {"diff": "devtrace.interchange.command:COMMAND"},
}
