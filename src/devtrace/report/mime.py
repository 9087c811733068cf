"""The MIME bundle of a report: our own type for the renderer, html for where there is none, text for a terminal.

    publish(*mime_bundle(report))

A notebook is a file that people commit and mail: above a budget the bundle holds fewer ops, and says so.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from typing import Any, Final

from devtrace.diagnosis.findings import ReportData
from devtrace.report.html import fragment
from devtrace.report.page import scripted
from devtrace.report.text import text
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
    report: ReportData, *, timeline: bool = True, budget: int = BUDGET
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the report by MIME type, and metadata (none). Without `timeline` the html is text only."""
    fitting, data = fitted(report.trace, budget)
    shown = replace(report, trace=fitting)
    html = scripted(shown, data) if timeline and needs_script() else fragment(shown, picture=timeline)
    return {MIME_TYPE: data, "text/html": html, "text/plain": plain_text(report)}, {}


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


def needs_script() -> bool:
    """Return whether this runs under VS Code or Colab, which have no renderer of ours but run a script in html."""
    return "VSCODE_PID" in os.environ or "google.colab" in sys.modules
