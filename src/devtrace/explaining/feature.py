"""What `explaining` offers to the kernel."""

from typing import Final

from devtrace.features import Feature

FEATURE: Final[Feature] = {
    "function": {
        "explain": "devtrace.explaining.explain:explain",
        "install": "devtrace.explaining.installation:install",
        "uninstall": "devtrace.explaining.installation:uninstall",
    },
    "command": {"explain": "devtrace.explaining.command:COMMAND"},
    "way": {"untraced": "devtrace.explaining.run_untraced:add_flag"},
    "notebook": {"explain": "devtrace.explaining.failed_cells:Explainer"},
}
