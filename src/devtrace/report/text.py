"""The report as text: what the terminal, the notebook's text/plain and the tests read.

The layout that every other form follows: findings worst first, each with the line, the tensor, its birth, the move that
missed it and the fix.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from typing import Final

from devtrace.diagnosis.causes.ordered import CAUSES
from devtrace.diagnosis.findings import Finding, ReportData, Site
from devtrace.trace.tables import TraceData
from devtrace.words.text_format import format_bytes, one_line, pluralize

SIGNS: Final = {"error": "✗", "warning": "!", "note": "·"}
WIDTH: Final = 100
REMARK: Final = 68
"""The column where the remarks beside births and moves begin, if the source leaves room."""


def text(report: ReportData) -> str:
    shown = [finding for finding in report.findings if finding.severity != "note"]
    blocks = ["\n".join(_finding_lines(finding, report.trace)) for finding in shown]
    return "\n\n".join([*blocks, "\n".join(line for told in summary(report) for line in _wrapped(told, ""))])


def summary(report: ReportData) -> list[str]:
    """What was counted and what could not be told, a sentence each."""
    return [_summary_line(report), *_rest_lines(report), *(f"devtrace: {note}" for note in report.notes)]


def _finding_lines(finding: Finding, trace: TraceData) -> list[str]:
    lines = [_headline(finding, trace), *_wrapped(finding.message, "  ")]
    for label, site, remark in places(finding):
        lines += _place(label, site, remark)
    if finding.help:
        lines += _wrapped("Fix    " + finding.help, "  ", "         ")
    return lines


def _headline(finding: Finding, trace: TraceData) -> str:
    op = trace.ops[finding.op].name if 0 <= finding.op < len(trace.ops) else finding.rule
    times = f"{finding.count:,}×" if finding.count > 1 else ""
    right = "   ".join(part for part in (times, _short(op, 40), " + ".join(finding.devices)) if part)
    where = f"{SIGNS[finding.severity]} {finding.site or 'somewhere'}"
    text = one_line(finding.site.text if finding.site else "")
    room = WIDTH - len(right) - len(where) - 6
    left = f"{where}   {_short(text, room)}" if room > 8 else where
    return f"{left:<{max(WIDTH - len(right), 0)}}{right}".rstrip()[:WIDTH]


def places(finding: Finding) -> list[tuple[str, Site, str]]:
    """Where the culprit was born and moved, each with what there is to say of it."""
    if finding.culprit is None:
        return []
    cause = CAUSES.get(finding.cause) if finding.cause and finding.severity == "error" else None
    born, moved = (cause.born_remark, cause.moved_remark) if cause is not None else ("", "")
    told = (("Born", finding.culprit.born, born), ("Moved", finding.culprit.moved, moved))
    return [(label, site, remark) for label, site, remark in told if site]


def _place(label: str, site: Site, remark: str) -> list[str]:
    left = f"  {label:<7}{site}  "
    room = WIDTH - len(left) - len(remark) - 3
    text = _short(one_line(site.text), max(room, 12))
    gap = max(REMARK - len(left) - len(text), 3) if remark else 0
    return [f"{left}{text}{' ' * gap}{remark}"]


def _summary_line(report: ReportData) -> str:
    ops = _without_a_line(report.trace)
    for row in report.ledger:
        ops.update(row.ops)
    devices = ", ".join(f"{number:,} on {device}" for device, number in ops.most_common() if number)
    total = sum(ops.values())
    sign = "" if any(finding.severity != "note" for finding in report.findings) else "✓ nothing to mend: "
    folded = f"; {report.trace.truncated:,} of them folded away" if report.trace.truncated else ""
    return f"{sign}{pluralize(total, 'op')}{f' ({devices})' if devices else ''}{folded}"


def _without_a_line(trace: TraceData) -> Counter[str]:
    """Ops by device that no line is known of, and which so no line of the ledger counts."""
    names = list(trace.devices)
    devices = trace.ops.ints("device")[trace.ops.ints("site") < 0].tolist()
    return Counter(names[device] for device in devices if device >= 0)


def _rest_lines(report: ReportData) -> list[str]:
    """What the notes hold, in a line: the ledger has it line by line."""
    kinds = (("h2d", " to a device"), ("d2h", " to the host"), ("d2d", " between devices"))
    copies = [(sum(getattr(row, name) for row in report.ledger), where) for name, where in kinds]
    said = [f"{pluralize(number, 'copy', 'copies')}{where}" for number, where in copies if number]
    waits = sum(row.syncs for row in report.ledger)
    said += [pluralize(waits, "sync")] if waits else []
    moved = sum(row.bytes for row in report.ledger)
    line = ", ".join(said) + (f"; {format_bytes(moved)} copied" if moved else "")
    return _wrapped(line, "") if said else []


def _wrapped(text: str, first: str, rest: str | None = None) -> list[str]:
    indent = first if rest is None else rest
    lines: list[str] = []
    for part in text.splitlines():
        lines += textwrap.wrap(
            part,
            WIDTH,
            initial_indent=first if not lines else indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
        )
    return lines


def _short(text: str, room: int) -> str:
    return text if len(text) <= room else text[: max(room - 1, 0)] + "…"
