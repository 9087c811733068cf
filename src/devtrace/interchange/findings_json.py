"""Findings as plain values, for programs: the fields that `report.findings` has, by their names.

devtrace run --json findings.json train.py
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from devtrace.diagnosis.findings import Culprit, Edit, Finding, ReportData, Site


def findings_json(report: ReportData, raised: BaseException | None = None) -> dict[str, Any]:
    """Return findings, errors and notes of a report, and the exception that ended the program."""
    trace = report.trace
    return {
        "producer": f"devtrace {version('devtrace')}",
        "title": trace.title,
        "devices": [{"name": device.name, "simulated": bool(device.simulated)} for device in trace.devices],
        "errors": [{"op": error.op.name, "type": error.type, "message": error.message} for error in trace.errors],
        "raised": raised and _raised(raised),
        "findings": [asdict(finding) for finding in report.findings],
        "notes": list(report.notes),
    }


def write(report: ReportData, path: Path, raised: BaseException | None = None) -> None:
    path.write_text(json.dumps(findings_json(report, raised), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _raised(error: BaseException) -> dict[str, Any]:
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    return {"type": type(error).__name__, "message": str(error), "lines": frames}


def read(path: Path) -> tuple[Finding, ...]:
    """Return the findings of a file that `write` made."""
    return tuple(_finding(each) for each in json.loads(path.read_text(encoding="utf-8"))["findings"])


def _finding(data: Mapping[str, Any]) -> Finding:
    values = dict(data)
    culprit = values["culprit"]
    return Finding(
        **{
            **values,
            "devices": tuple(values["devices"]),
            "site": _site(values["site"]),
            "culprit": culprit and _culprit(culprit),
            "edits": tuple(Edit(**edit) for edit in values["edits"]),
            "ops": tuple(values["ops"]),
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
