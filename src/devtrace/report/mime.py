"""The MIME bundle of a report: our own type for the renderer, html where there is none, findings for programs, text.

    publish(*mime_bundle(report))

A notebook is a file that people commit and mail: above a budget the bundle holds fewer ops, and says so.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from devtrace.contract.findings_json import FINDINGS_TYPE, MOST_BYTES, compact, size
from devtrace.diagnosis.findings import ReportData
from devtrace.report import renderer
from devtrace.report.html import fragment
from devtrace.report.page import built
from devtrace.report.text import text
from devtrace.report.upgrading import script_size, upgrading
from devtrace.trace.format import encode
from devtrace.trace.subset import around, cut
from devtrace.trace.tables import TraceData
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import escape_invisible

MIME_TYPE: Final = "application/vnd.devtrace.v1+json"
BUDGET: Final = 1_500_000
"""Bytes of a trace in a notebook: 100,000 ops (what a recording keeps) of a training loop at 12 bytes, and some."""
LONGEST_TEXT: Final = 100_000


def mime_bundle(
    report: ReportData,
    *,
    timeline: bool = True,
    budget: int = BUDGET,
    above: str = "",
    beside: Callable[[TraceData], dict[str, Any]] = lambda trace: {},
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the report by MIME type, and metadata (none). Without `timeline` the html is text only.

    As much of the trace as fits is there as data, or within html whose script shows it, and not twice. `above` is html
    over the report, and `beside` gives what the data has beside the trace.
    """
    script = timeline and renderer.sends_script()
    trace, data = fitted(report.trace, room(report, budget, script=script))
    report, data = replace(report, trace=trace), data | beside(trace)
    words = {FINDINGS_TYPE: for_programs(report), "text/plain": plain_text(report)}
    if script and built():
        return {"text/html": upgrading(report, data, above)} | words, {}
    return {MIME_TYPE: data, "text/html": above + fragment(report, picture=timeline)} | words, {}


def room(report: ReportData, budget: int, *, script: bool) -> int:
    """Return the bytes left to a trace: a script that shows it, and what programs read, are of the same output."""
    return max(budget - size(for_programs(report)) - (script_size(report) if script else 0), budget // 2)


def for_programs(report: ReportData) -> dict[str, Any]:
    """Return errors and warnings for a program that reads the notebook, and need not understand html."""
    return compact(report, most=MOST_BYTES)


def fitted(trace: TraceData, budget: int) -> tuple[TraceData, dict[str, Any]]:
    """Return as much of the trace as encodes to so many bytes, and its encoding."""
    data, ops, notes = encode(trace), len(trace.ops), trace.notes
    while (size := len(json.dumps(data))) > budget and ops > 1:
        ops = min(int(ops * 0.9 * budget / size), ops // 2)
        shorter = cut(trace, around(trace, max(ops, 1)))
        trace = replace(shorter, notes=(*notes, sentence("note.cut", count=len(shorter.ops), size=size)))
        data = encode(trace)
    return trace, data


def plain_text(report: ReportData) -> str:
    words = text(report)
    return words if len(words) <= LONGEST_TEXT else escape_invisible(words, LONGEST_TEXT)
