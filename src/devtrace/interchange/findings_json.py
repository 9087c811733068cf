"""Findings as plain values, for programs: the fields that `report.findings` has, by their names.

devtrace run --json findings.json train.py
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from devtrace.diagnosis.findings import Culprit, Edit, Finding, Line, ReportData, Site


def findings_json(report: ReportData, error: BaseException | None = None) -> dict[str, Any]:
    """Return findings, errors and notes of a report, and the exception that ended the program."""
    trace = report.trace
    return {
        "producer": _producer(),
        "title": trace.title,
        "devices": [{"name": device.name, "simulated": bool(device.simulated)} for device in trace.devices],
        "errors": [{"op": error.op.name, "type": error.type, "message": error.message} for error in trace.errors],
        "raised": error and raised(error),
        "findings": [asdict(finding) for finding in report.findings],
        "notes": list(report.notes),
    }


def write(report: ReportData, path: Path, error: BaseException | None = None) -> None:
    _write(findings_json(report, error), path)


def write_of_tests(findings: Sequence[Finding], tests: Sequence[str], path: Path) -> None:
    """Write findings of several tests, with the test of each."""
    found = [asdict(finding) for finding in findings]
    _write({"producer": _producer(), "title": "pytest", "tests": list(tests), "findings": found}, path)


def _write(data: Mapping[str, Any], path: Path) -> None:
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _producer() -> str:
    return f"devtrace {version('devtrace')}"


def raised(error: BaseException) -> dict[str, Any]:
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    return {"type": type(error).__name__, "message": str(error), "lines": frames}


def read(path: Path) -> tuple[Finding, ...]:
    """Return the findings of a file that `write` made."""
    return tuple(finding_of(each) for each in json.loads(path.read_text(encoding="utf-8"))["findings"])


def finding_of(data: Mapping[str, Any]) -> Finding:
    """Return a finding of plain values, as `asdict` made them."""
    culprit = data["culprit"]
    return Finding(
        **{
            **data,
            "devices": tuple(data["devices"]),
            "site": _site(data["site"]),
            "culprit": culprit and _culprit(culprit),
            "edits": tuple(Edit(**edit) for edit in data["edits"]),
            "ops": tuple(data["ops"]),
            "lines": tuple(Line(**{**line, "site": Site(**line["site"])}) for line in data["lines"]),
        }
    )


def _culprit(data: Mapping[str, Any]) -> Culprit:
    return Culprit(
        **{
            **data,
            "names": tuple(data["names"]),
            "shape": tuple(data["shape"]),
            "born": _site(data["born"]),
            "moved": _site(data["moved"]),
            "chain": tuple(Site(**site) for site in data["chain"]),
        }
    )


def _site(data: Mapping[str, Any] | None) -> Site | None:
    return Site(**data) if data else None
