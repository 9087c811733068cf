"""What is said of a program, given as a function, that fails on a simulated device."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import devtrace
from devtrace.diagnosis.findings import Culprit, Finding, ReportData, Site


def report_of(program: Callable[[], object], simulate: str = "cuda:1") -> ReportData:
    """Return the report of a program that was recorded."""
    with pytest.raises((RuntimeError, TypeError)), devtrace.record(simulate=simulate) as recording:
        program()
    return recording.report


def explained(program: Callable[[], object], simulate: str = "cuda:1") -> Finding:
    """Return what is said of a program's error that nobody recorded."""
    with devtrace.simulate(simulate), pytest.raises((RuntimeError, TypeError)) as raised:
        program()
    return devtrace.explain(raised.value).findings[0]


def culprit_of(finding: Finding) -> Culprit:
    assert finding.culprit is not None
    return finding.culprit


def birth_of(finding: Finding) -> Site:
    """Return the line at which a finding's tensor was made."""
    born = culprit_of(finding).born
    assert born is not None
    return born


def edits_of(finding: Finding) -> list[str]:
    """Return the lines that a finding's edits write."""
    return [line.strip() for edit in finding.edits for line in edit.after.splitlines()]
