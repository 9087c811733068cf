"""Findings of the tests that failed: as JSON, as SARIF, and as annotations where GitHub Actions runs the tests.

A test's findings travel with its report, from the workers of pytest-xdist too.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from devtrace.api.results import Report

_ATTRIBUTE: Final = "devtrace_findings"


def add_findings(shown: pytest.TestReport, report: Report, broken: Mapping[str, int]) -> None:
    """Let a failed test's report carry the findings; `broken` has the limits that the test broke."""
    from devtrace.contract.entries import entries_of_test

    setattr(shown, _ATTRIBUTE, [entry.to_json() for entry in entries_of_test(report, shown.nodeid, broken)])


class TestFindings:
    """Collects findings as tests end, and writes them after the last."""

    __test__ = False

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._findings: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._findings += getattr(report, _ATTRIBUTE, [])

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write the files and annotations; a worker has no terminal, and so writes none."""
        json_file, sarif_file, notes = (self._config.getoption(f"--devtrace-{n}") for n in ("json", "sarif", "notes"))
        if not self._findings and not json_file and not sarif_file:
            return
        from devtrace.contract import code_scanning, findings_json
        from devtrace.contract.entries import read_entries, worth_showing

        entries = read_entries(self._findings)
        shown = worth_showing(entries, notes=notes)
        root = code_scanning.project_folder(self._config.invocation_params.dir)
        if json_file:
            findings_json.write(findings_json.of_tests(entries), Path(json_file))
        if sarif_file:
            findings_json.write(code_scanning.sarif(shown, (), root), Path(sarif_file))
        if code_scanning.in_github_actions():
            for line in code_scanning.github_annotations(shown, root):
                terminalreporter.write_line(line)
