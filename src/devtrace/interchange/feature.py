"""What `interchange` offers to the kernel."""

from typing import Final

from devtrace.features import Feature

FEATURE: Final[Feature] = {
    "function": {"diff": "devtrace.interchange.diff:diff"},
    "command": {"diff": "devtrace.interchange.command:COMMAND"},
    "export": {
        "pandas": "devtrace.interchange.pandas_tables:to_pandas",
        "perfetto": "devtrace.interchange.perfetto:to_perfetto",
    },
}
