"""One run of a program as `devtrace fix` sees it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from devtrace.diagnosis.findings import Finding

MOST_OUTPUT: Final = 1 << 22
"""Bytes of a program's output that are kept, to compare those of two runs."""
Ending = Literal["ended", "raised", "time", "signal"]
Place = tuple[str, int | None, int]
"""File, cell and line."""


@dataclass(frozen=True)
class ProgramRun:
    """One run: how it ended, the exception if one ended it, and what devtrace found, in the order of the program."""

    ending: Ending
    findings: tuple[Finding, ...]
    raised: str = ""
    lines: tuple[Place, ...] = ()  # where the exception passed through
    values: Mapping[str, Any] = field(default_factory=dict)  # that the program left
    output: str = ""
    crossings: int = 0  # copies between devices and waits for one
    peaks: Mapping[str, int] = field(default_factory=dict)  # bytes of each device when it had most

    @property
    def comparable(self) -> int:
        """Return how much another run can be held against: each value, and what was printed."""
        return len(self.values) + bool(self.output)

    @property
    def error(self) -> Finding | None:
        """Return the first device error."""
        return next((finding for finding in self.findings if finding.severity == "error"), None)
