"""What a traced cell shows: our own type for the renderer, html for where there is none, text for a terminal.

    publish(*mime_bundle(trace, report))

A notebook is a file that people commit and mail: above a budget the bundle holds fewer ops, and says so.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from html import escape
from typing import Any, Final

from . import plain
from .cut import around, cut
from .format import encode
from .html import fragment
from .page import scripted
from .report import Report
from .trace import Trace

MIME_TYPE: Final = "application/vnd.devtrace.v1+json"
BUDGET: Final = 1_500_000
"""Bytes of a trace in a notebook: 100,000 ops (what a recording keeps) of a training loop at 12 bytes, and some."""
LONGEST_TEXT: Final = 100_000


def mime_bundle(
    trace: Trace, report: Report, *, timeline: bool = True, budget: int = BUDGET
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A report's data by MIME type, and metadata (none). Without `timeline` the html is words only."""
    fitting, data = fitted(trace, budget)
    shown = replace(report, trace=fitting)
    html = scripted(shown, data) if timeline and needs_script() else fragment(shown, picture=timeline)
    return {MIME_TYPE: data, "text/html": html, "text/plain": plain_text(report)}, {}


def fitted(trace: Trace, budget: int) -> tuple[Trace, dict[str, Any]]:
    """The trace, or as much of it as encodes to a number of bytes, and what it encodes to."""
    data, ops = encode(trace), len(trace.ops)
    while (size := len(json.dumps(data))) > budget and ops > 1:
        ops = min(int(ops * 0.9 * budget / size), ops // 2)
        trace = _with_note(cut(trace, around(trace, max(ops, 1))), size)
        data = encode(trace)
    return trace, data


def _with_note(trace: Trace, size: int) -> Trace:
    note = (
        f"this notebook holds {plain.counted(len(trace.ops), 'op')} of the trace, whose {plain.size(size)} would make "
        "it large; save the whole trace to a file to see every op"
    )
    return replace(trace, notes=(*(old for old in trace.notes if not old.startswith("this notebook holds")), note))


def plain_text(report: Report) -> str:
    text = report.text
    return text if len(text) <= LONGEST_TEXT else plain.visible(text, LONGEST_TEXT)


def needs_script() -> bool:
    """Whether this runs under VS Code or Colab, which have no renderer of ours but run a script in html."""
    return "VSCODE_PID" in os.environ or "google.colab" in sys.modules


def bundle(title: str, counts: Mapping[str, int]) -> dict[str, object]:
    """The first thin thread's table of ops by device."""
    rows = sorted(counts.items(), key=lambda row: -row[1])
    text = "\n".join([f"{title} ops by device", *(f"  {device:<8} {ops}" for device, ops in rows)])
    cells = "".join(f"<tr><td>{escape(device)}</td><td>{ops}</td></tr>" for device, ops in rows)
    return {
        MIME_TYPE: {"format": "devtrace", "version": 1, "title": title, "counts": dict(rows)},
        "text/html": f"<table><caption>{escape(title)} ops by device</caption>{cells}</table>",
        "text/plain": text,
    }
