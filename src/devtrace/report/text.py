"""The report as text: in the terminal, in the notebook's text/plain, in the tests.

Every other form follows its order: findings worst first, each with the line, the tensor, its birth, the move that
missed it and the fix.
"""

from __future__ import annotations

import re
from typing import Final

from devtrace.diagnosis.findings import Finding, Line, ReportData
from devtrace.drawing import palette
from devtrace.report import parts
from devtrace.trace.tables import TraceData
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line, shorten
from devtrace.words.wrapping import columns, pad, wrap

WIDTH: Final = 100
_FIRST_SENTENCE: Final = re.compile(r".*?(?:\.(?=\s|$)|。|$)")
REMARK: Final = 68
"""The column where the remarks beside births and moves begin, if the source leaves room."""


def text(report: ReportData) -> str:
    blocks = [_finding_lines(finding, report.trace) for _, finding in parts.shown(report)]
    last = [line for each in parts.summary(report) for line in _wrapped(each, "", "")]
    return "\n\n".join(map("\n".join, [*blocks, last]))


def in_one_line(finding: Finding) -> str:
    """Name the line of a finding, the first sentence on it, and where the report is."""
    first = _FIRST_SENTENCE.match(one_line(finding.message))
    message = shorten(first[0] if first else "", 2 * WIDTH)
    return sentence(
        "report.above-traceback",
        sign=palette.sign(finding.severity),
        where=parts.where(finding.site),
        message=message,
    )


def _finding_lines(finding: Finding, trace: TraceData) -> list[str]:
    labels = [*(line.label for line in finding.lines), sentence("label.fix")]
    beside = max(map(columns, labels)) + 2
    lines = _wrapped(finding.message, f"{palette.sign(finding.severity)} ", "  ")
    lines += [_headline(finding, trace), *(_line(each, beside) for each in finding.lines)]
    if finding.help:
        lines += _wrapped(finding.help, "  " + pad(labels[-1], beside), " " * (beside + 2))
    return lines


def _headline(finding: Finding, trace: TraceData) -> str:
    times, op, devices = parts.headline(finding, trace)
    right = "   ".join(filter(None, (times, shorten(op, 40), devices)))
    where = f"  {parts.where(finding.site)}"
    text = one_line(finding.site.text if finding.site else "")
    room = WIDTH - len(right) - len(where) - 6
    left = f"{where}   {shorten(text, room)}" if room > 8 else where
    return f"{left:<{max(WIDTH - len(right), 0)}}{right}".rstrip()[:WIDTH]


def _line(line: Line, beside: int) -> str:
    left = f"  {pad(line.label, beside)}{line.site}  "
    room = WIDTH - columns(left) - columns(line.remark) - 3
    text = shorten(one_line(line.site.text), max(room, 12))
    gap = max(REMARK - columns(left) - len(text), 3) if line.remark else 0
    return f"{left}{text}{' ' * gap}{line.remark}"


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    lines: list[str] = []
    for part in text.splitlines():
        indent = rest if lines else first
        lines += wrap(part, WIDTH, indent, rest)
    return lines
