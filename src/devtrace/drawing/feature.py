"""What `drawing` offers to the kernel."""

from typing import Final

from devtrace.features import Feature

FEATURE: Final[Feature] = {
    "picture": {
        "static": "devtrace.drawing.svg:pictures",
    },
    "figure": {
        "plotly": "devtrace.drawing.figures:figure",
    },
}
