"""Findings as plain values, for programs: the fields that `report.findings` has, by their names.

devtrace run --json findings.json train.py
"""

import json
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from devtrace.diagnosis.findings import Finding, ReportData, from_json, to_json
from devtrace.runtime.requirements import own_version
from devtrace.runtime.whole_files import put


def findings_json(report: ReportData, error: BaseException | None = None) -> dict[str, Any]:
    """Return findings, errors and notes of a report, and the exception that ended the program."""
    trace = report.trace
    return {
        "producer": f"devtrace {own_version()}",
        "title": trace.title,
        "devices": [{"name": device.name, "simulated": bool(device.simulated)} for device in trace.devices],
        "errors": [{"op": error.op.name, "type": error.type, "message": error.message} for error in trace.errors],
        "raised": error and raised(error),
        "outcome": report.outcome,
        "all_clear": report.all_clear,
        "findings": [to_json(finding) for finding in report.findings],
        "notes": list(report.notes),
    }


def write(report: ReportData, path: Path, error: BaseException | None = None) -> None:
    _write(findings_json(report, error), path)


def write_of_tests(findings: Sequence[Finding], tests: Sequence[str], path: Path) -> None:
    """Write findings of several tests, with the test of each."""
    found = [to_json(finding) for finding in findings]
    _write({"producer": f"devtrace {own_version()}", "title": "pytest", "tests": list(tests), "findings": found}, path)


def _write(data: Mapping[str, Any], path: Path) -> None:
    put(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def raised(error: BaseException) -> dict[str, Any]:
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    return {"type": type(error).__name__, "message": str(error), "lines": frames}


def read(path: Path) -> tuple[Finding, ...]:
    """Return the findings of a file that `write` made."""
    return tuple(from_json(each) for each in json.loads(path.read_text(encoding="utf-8"))["findings"])
