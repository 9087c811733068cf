"""Findings as plain values, for programs: whole, with the fields of `report.findings`, or compact, for an agent.

devtrace run --json findings.json train.py
devtrace run --json=compact train.py            the last line of stdout

Both forms are those of `findings.schema.json`. A field that is added changes no version; one that goes or changes its
meaning does.
"""

import json
import os
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from devtrace.contract.entries import Entry, entries_of, worth_showing
from devtrace.diagnosis.findings import Finding, ReportData, from_json
from devtrace.runtime.requirements import own_version
from devtrace.runtime.whole_files import put
from devtrace.words.text_format import shorten

FORMAT: Final = "devtrace-findings"
COMPACT: Final = "compact"
VERSION: Final = 1
FINDINGS_TYPE: Final = "application/vnd.devtrace.findings+json"
MOST_BYTES: Final = 8_000
"""Of the entry of an output: what an agent reads at once, and a notebook does not feel."""
MOST_NAMES: Final = 3
LONGEST: Final = 600
_LONG_FORM: Final = frozenset(
    ("op", "ops", "lines", "chain", "name", "column", "end_line", "end_column", "function", "cell_id", "level")
)
"""What the compact form is without."""
_TEXT: Final = ("before", "after")
"""Of an edit: whole, and there where it is empty, too."""


def findings_json(
    report: ReportData, error: BaseException | None = None, entries: Sequence[Entry] | None = None
) -> dict[str, Any]:
    """Return findings, errors and notes of a report, and the exception that ended the program."""
    trace = report.trace
    return {
        **_head(trace.title),
        "devices": [{"name": device.name, "simulated": bool(device.simulated)} for device in trace.devices],
        "errors": [{"op": error.op.name, "type": error.type, "message": error.message} for error in trace.errors],
        "raised": error and raised(error),
        "outcome": report.outcome,
        "all_clear": report.all_clear,
        "counts": counts_of(report),
        "peaks": peaks_of([report]),
        "findings": [entry.to_json() for entry in (entries_of(report.findings) if entries is None else entries)],
        "notes": list(report.notes),
    }


def counts_of(report: ReportData) -> dict[str, int]:
    """Return how often all lines copied between devices, and how often they waited for one."""
    return {"copies": sum(row.copies for row in report.ledger), "syncs": sum(row.syncs for row in report.ledger)}


def peaks_of(reports: Iterable[ReportData]) -> dict[str, int]:
    """Return the bytes of each device when it had most."""
    peaks: dict[str, int] = {}
    for curve in (curve for report in reports for curve in report.trace.memory if len(curve.ops)):
        peaks[curve.device] = max(peaks.get(curve.device, 0), int(curve.total[curve.peak]))
    return peaks


def of_tests(entries: Iterable[Entry]) -> dict[str, Any]:
    """Return the findings of several tests, each with the test that it is of."""
    return {**_head("pytest"), "findings": [entry.to_json() for entry in entries]}


def of_fixes(program: str, fixed: Iterable[Finding], left: Iterable[Finding]) -> dict[str, Any]:
    """Return the findings that were fixed, with their grade and proof, and those that the last run still had."""
    parts = {"findings": fixed, "left": left}
    return _head(program) | {key: [Entry(finding).to_json() for finding in part] for key, part in parts.items()}


def compact(report: ReportData, entries: Sequence[Entry] | None = None, *, most: int | None = None) -> dict[str, Any]:
    """Return errors and warnings, worst first, with paths relative to this folder; at most so many bytes of them."""
    shown = worth_showing(entries_of(report.findings) if entries is None else entries)
    root = os.getcwd()
    data = _head(report.trace.title) | {
        "form": COMPACT,
        "outcome": shorten(report.outcome, LONGEST),
        "all_clear": report.all_clear,
        "findings": [_compact_part(entry.to_json(), root) for entry in shown],
        "notes": [shorten(note, LONGEST) for note in report.notes[:MOST_NAMES]],
        "left_out": 0,
    }
    findings = data["findings"]
    while most is not None and findings and size(data) > most:
        findings.pop()
        data["left_out"] += 1
    return data


def size(data: Mapping[str, Any]) -> int:
    """Return the bytes of an entry in a notebook's file."""
    return len(json.dumps(data, ensure_ascii=False).encode(errors="backslashreplace"))


def in_a_line(data: Mapping[str, Any]) -> str:
    return json.dumps(data, separators=(",", ":"))  # in ASCII, whatever stdout can write


def _head(title: str) -> dict[str, Any]:
    return {"format": FORMAT, "version": VERSION, "producer": f"devtrace {own_version()}", "title": title}


def _compact_part(data: Mapping[str, Any], root: str) -> dict[str, Any]:
    """Return what a part of a finding says, without what is empty and what only the long form has."""
    short = {key: _compact_value(key, value, root) for key, value in data.items() if key not in _LONG_FORM}
    if short.get("cell") is not None:
        short.pop("file", None)  # a cell has no file that another program could open
    empty: tuple[Any, ...] = ("", None, [], {}, "not tried")  # the last is an edit's grade
    return {key: value for key, value in short.items() if key in _TEXT or value not in empty}


def _compact_value(key: str, value: Any, root: str) -> Any:
    if isinstance(value, Mapping):
        return _compact_part(value, root)
    if isinstance(value, list):
        return [_compact_value("", item, root) for item in (value[:MOST_NAMES] if key == "names" else value)]
    if key == "file":
        return relative(value, root) or value
    return value if key in _TEXT or not isinstance(value, str) else shorten(value, LONGEST)


def relative(file: str, root: str) -> str | None:
    """Return a file's path from the folder `root`; None if it lies elsewhere."""
    path, folder = Path(os.path.abspath(file)), Path(root)
    pairs = ((path, folder), (path.resolve(), folder.resolve()))
    return next((inner.relative_to(outer).as_posix() for inner, outer in pairs if inner.is_relative_to(outer)), None)


def write(data: Mapping[str, Any], path: Path) -> None:
    put(path, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def raised(error: BaseException) -> dict[str, Any]:
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    return {"type": type(error).__name__, "message": str(error), "lines": frames}


def read(path: Path) -> tuple[Finding, ...]:
    """Return the findings of a file that `write` made."""
    return tuple(from_json(finding) for finding in json.loads(path.read_text(encoding="utf-8"))["findings"])
