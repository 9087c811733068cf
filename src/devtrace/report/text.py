"""The report as text: in the terminal, in the notebook's text/plain, in the tests.

Every other form follows its order: findings worst first, each with the line, the tensor, its birth, the move that
missed it and the fix.
"""

from __future__ import annotations

import textwrap
from itertools import starmap
from typing import Final

from devtrace.diagnosis.findings import Finding, ReportData, Site
from devtrace.drawing import palette
from devtrace.report import parts
from devtrace.trace.tables import TraceData
from devtrace.words.text_format import one_line, shorten

WIDTH: Final = 100
REMARK: Final = 68
"""The column where the remarks beside births and moves begin, if the source leaves room."""


def text(report: ReportData) -> str:
    blocks = [_finding_lines(finding, report.trace) for _, finding in parts.shown(report)]
    last = [line for sentence in parts.summary(report) for line in _wrapped(sentence, "", "")]
    return "\n\n".join(map("\n".join, [*blocks, last]))


def in_one_line(finding: Finding) -> str:
    """Name the line of a finding, and the first sentence on it."""
    first = one_line(finding.message).partition(". ")[0].removesuffix(".")
    return f"{palette.sign(finding.severity)} {finding.site or parts.NO_SITE}: {shorten(first, 2 * WIDTH)}."


def _finding_lines(finding: Finding, trace: TraceData) -> list[str]:
    lines = [_headline(finding, trace), *_wrapped(finding.message, "  ", "  "), *starmap(_site, parts.sites(finding))]
    if finding.help:
        lines += _wrapped("Fix    " + finding.help, "  ", "         ")
    return lines


def _headline(finding: Finding, trace: TraceData) -> str:
    times, op, devices = parts.headline(finding, trace)
    right = "   ".join(filter(None, (times, shorten(op, 40), devices)))
    where = f"{palette.sign(finding.severity)} {finding.site or parts.NO_SITE}"
    text = one_line(finding.site.text if finding.site else "")
    room = WIDTH - len(right) - len(where) - 6
    left = f"{where}   {shorten(text, room)}" if room > 8 else where
    return f"{left:<{max(WIDTH - len(right), 0)}}{right}".rstrip()[:WIDTH]


def _site(label: str, site: Site, remark: str) -> str:
    left = f"  {label:<7}{site}  "
    room = WIDTH - len(left) - len(remark) - 3
    text = shorten(one_line(site.text), max(room, 12))
    gap = max(REMARK - len(left) - len(text), 3) if remark else 0
    return f"{left}{text}{' ' * gap}{remark}"


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    lines: list[str] = []
    for part in text.splitlines():
        indent = rest if lines else first
        lines += textwrap.wrap(part, WIDTH, initial_indent=indent, subsequent_indent=rest, break_on_hyphens=False)
    return lines
