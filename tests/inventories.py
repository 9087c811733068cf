"""An inventory listed to its end, as the kernel does in its idle time."""

from __future__ import annotations

from devtrace.notebook.inventory.inventory import Row, Steps


def drain(steps: Steps) -> Row:
    """Run a listing to its end."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            row: Row = end.value
            return row
