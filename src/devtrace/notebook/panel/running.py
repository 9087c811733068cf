"""The cell that is being traced, as a panel shows it while it runs."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from devtrace.notebook.cells import Tracing
    from devtrace.recording.progress.counts import Counter


class Running:
    """Reads the recording's counters, from the feed's thread."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self._began = 0.0
        self._counted: object = None
        self._counter: Counter | None = None

    @property
    def counting(self) -> bool:
        return self._tracing.running

    def changed(self, what: str) -> None:
        if what == "began":
            self._began = monotonic()
        elif what == "finished":
            self._counted = self._counter = None

    def look(self) -> dict[str, Any] | None:
        """Return the counts of the cell so far, None where it has just ended."""
        cell, recording = self._tracing.cell, self._tracing.recording
        if cell is None:
            return None
        if recording is not None and recording is not self._counted:
            self._counted, self._counter = recording, recording.counter()
        counter = self._counter
        counts = counter.look() if counter is not None else None
        simulated = bool(self._tracing.simulated_now)
        return {
            "label": cell.label,
            "cell": cell.id,
            "seconds": monotonic() - self._began,
            "ops": counts.ops if counts else 0,
            "copies": counts.copies if counts else 0,
            "copied": counts.copied if counts else 0,
            "devices": [
                {"device": device, "simulated": simulated and device.startswith("cuda"), "ops": ops, "bytes": made}
                for device, (ops, made) in sorted((counts.devices if counts else {}).items())
            ],
        }
