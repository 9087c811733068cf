"""The report of a job, made by its first rank when the others have ended: no rank alone knows what differs.

Traces that lie beside its own are merged. It waits for those that are not there yet, as long as they can still come:
not where their ranks may wait for this one. `devtrace report FILES...` says the same later, with all of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from devtrace.runtime.rank import LAUNCHERS, ranked_path

if TYPE_CHECKING:
    from devtrace.api.results import Report

PATIENCE: Final = {
    "ended": 60.0,  # the other ranks are about to
    "stopped": 5.0,  # by a signal: a rank that hangs saves after two, and torchrun kills after thirty
    "failed": 3.0,  # the others fail in the same way, or wait for this one to end
}
"""Seconds for the other ranks on this machine, by how this one ended; those on others may save to a disk of theirs."""


def size_of_job() -> int:
    """Return how many ranks a launcher started; 1 where none did."""
    sizes = (os.environ.get(variable, "") for _, variable in LAUNCHERS)
    return max((int(size) for size in sizes if size.isdecimal()), default=1)


@dataclass(frozen=True)
class Job:
    """Ranks that save beside each other, of a job that began at `began` (seconds since the epoch)."""

    trace: Path  # as asked for, without the rank
    size: int = field(default_factory=size_of_job)
    began: float = field(default_factory=time.time)

    def report(self, how: str, is_called_off: Callable[[], bool]) -> Report | None:
        """Wait for the other ranks, merge what is there, and return its report; None where nothing was saved."""
        from devtrace.api.results import diagnose, load

        deadline = time.monotonic() + PATIENCE[how]
        local_size = os.environ.get("LOCAL_WORLD_SIZE", "")
        ranks_here = min(self.size, int(local_size)) if local_size.isdecimal() else self.size
        while len(files := self._saved()) < ranks_here and time.monotonic() < deadline and not is_called_off():
            time.sleep(0.05)
        if not files:
            return None
        report = diagnose(load(*files))
        if len(files) == self.size:
            return report
        return replace(report, trace=replace(report.trace, all_clear=False))  # nobody knows of the others

    def _saved(self) -> list[Path]:
        """Return the traces that were saved since the job began; older ones are of an earlier run."""
        paths = [ranked_path(self.trace, rank) for rank in range(self.size)]
        return [path for path in paths if path.exists() and path.stat().st_mtime >= self.began]
