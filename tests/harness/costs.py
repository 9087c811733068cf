"""What a program pays for nothing, recorded on a simulated device."""

from __future__ import annotations

from collections.abc import Callable

import torch

import devtrace
from devtrace.diagnosis.findings import Finding


def warnings(program: Callable[[], object]) -> list[Finding]:
    """Return a recorded program's findings that are more than notes."""
    torch.manual_seed(0)
    with devtrace.record(simulate="cuda:1") as recording:
        program()
    assert not recording.report.notes
    return [finding for finding in recording.report.findings if finding.severity != "note"]
