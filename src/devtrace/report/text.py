"""The report as text: in the terminal, in the notebook's text/plain, in the tests.

Every other form follows its order: findings worst first, each with the line, the tensor, its birth, the move that
missed it and the fix.
"""

import os
from typing import Final, TextIO

from devtrace.diagnosis.findings import Finding, Line, ReportData
from devtrace.report import palette, parts
from devtrace.trace.tables import TraceData
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line, shorten
from devtrace.words.wrapping import columns, cut, pad, wrap

WIDTH: Final = 100
NARROWEST: Final = 60
WIDEST: Final = 120
REMARK: Final = 68
"""The column where the remarks beside births and moves begin, if the source leaves room."""


def text(report: ReportData, width: int = WIDTH) -> str:
    """Write the report in lines of so many columns."""
    blocks = [_finding_lines(finding, report.trace, width) for _, finding in parts.shown(report)]
    closing = [line for words in parts.summary(report) for line in _wrapped(words, width, "", "")]
    opening = [line for words in parts.of_the_job(report) for line in _wrapped(words, width, "", "")]
    return "\n\n".join(map("\n".join, filter(None, [opening, *blocks, closing])))


def terminal_width(stream: TextIO) -> int:
    """Return the columns of the terminal that a stream leads to, within what a report is good to read in."""
    try:
        width = os.get_terminal_size(stream.fileno()).columns
    except (AttributeError, OSError, ValueError):  # no stream, a closed one, or no terminal
        return WIDTH
    return min(max(width, NARROWEST), WIDEST)


def _finding_lines(finding: Finding, trace: TraceData, width: int) -> list[str]:
    advice = parts.advice(finding)
    label_width = max(map(columns, [*(line.label for line in finding.lines), *advice, sentence("label.fix")])) + 2
    lines = _wrapped(finding.message, width, f"{palette.sign(finding.severity)} ", "  ")
    lines += _headline(finding, trace, width)
    lines += (part for line in finding.lines for part in _labelled_line(line, label_width, width))
    for label, words in advice.items():
        lines += _wrapped(words, width, "  " + pad(label, label_width), " " * (label_width + 2))
    return lines


def _headline(finding: Finding, trace: TraceData, width: int) -> list[str]:
    """Return the line with the op and devices at its right; of a narrow report they are on a line of their own."""
    times, op, devices = parts.headline(finding, trace)
    op_and_devices = "   ".join(filter(None, (times, shorten(op, 40), devices)))
    where = f"  {parts.where(finding.site)}"
    text = one_line(finding.site.text if finding.site else "")
    room = width - columns(op_and_devices) - columns(where) - 6
    if room >= min(columns(text), 28):  # columns that say what a statement does
        left = f"{where}   {cut(text, max(room, 0))}"
        return [cut(f"{pad(left, width - columns(op_and_devices))}{op_and_devices}".rstrip(), width)]
    left = cut(f"{where}   {text}", width)
    return [left, cut(" " * max(width - columns(op_and_devices), 2) + op_and_devices, width)]


def _labelled_line(line: Line, label_width: int, width: int) -> list[str]:
    left = cut(f"  {pad(line.label, label_width)}{line.site}  ", width)
    text = one_line(line.site.text)
    room = width - columns(left) - columns(line.remark) - 3
    if line.remark and room < min(columns(text), 12):
        remark = cut(" " * (label_width + 2) + line.remark, width)
        return [(left + cut(text, width - columns(left))).rstrip(), remark]
    text = cut(text, max(room, 12))
    column = min(REMARK, width - columns(line.remark))
    gap = max(column - columns(left) - columns(text), 3) if line.remark else 0
    return [f"{left}{text}{' ' * gap}{line.remark}"]


def _wrapped(text: str, width: int, first: str, rest: str) -> list[str]:
    lines: list[str] = []
    for part in text.splitlines():
        indent = rest if lines else first
        lines += wrap(part, width, indent, rest)
    return lines
