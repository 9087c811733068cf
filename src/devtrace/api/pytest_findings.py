"""Findings of the tests that failed: as JSON, as SARIF, and as annotations where GitHub Actions runs the tests.

A test's findings travel with its report, from the workers of pytest-xdist too.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from devtrace.diagnosis.findings import Finding

_ATTRIBUTE: Final = "devtrace_findings"


def add_findings(report: pytest.TestReport, findings: Iterable[Finding]) -> None:
    from devtrace.diagnosis.findings import to_json

    setattr(report, _ATTRIBUTE, [to_json(finding) for finding in findings])


class TestFindings:
    """Collects findings as tests end, and writes them after the last."""

    __test__ = False

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._tests: list[str] = []
        self._findings: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        found = getattr(report, _ATTRIBUTE, [])
        self._findings += found
        self._tests += [report.nodeid] * len(found)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write the files and annotations; a worker has no terminal, and so writes none."""
        json_file, sarif_file = (self._config.getoption(f"--devtrace-{name}") for name in ("json", "sarif"))
        if not self._findings and not json_file and not sarif_file:
            return
        from devtrace.diagnosis.findings import from_json
        from devtrace.interchange import code_scanning, findings_json

        findings = [from_json(data) for data in self._findings]
        root = code_scanning.project_folder(self._config.invocation_params.dir)
        if json_file:
            findings_json.write_of_tests(findings, self._tests, Path(json_file))
        if sarif_file:
            code_scanning.write_sarif(findings, (), Path(sarif_file), root)
        if code_scanning.in_github_actions():
            for line in code_scanning.github_annotations(findings, root):
                terminalreporter.write_line(line)
