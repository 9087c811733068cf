"""The parts of a report that its forms lay out: findings to show, headlines, sites with remarks, summary sentences."""

from __future__ import annotations

from collections import Counter
from typing import Final

from devtrace.diagnosis.causes.ordered import CAUSES
from devtrace.diagnosis.findings import Finding, ReportData, Site
from devtrace.trace.columns import LEDGER_COUNTS
from devtrace.trace.tables import TraceData
from devtrace.words.text_format import format_bytes, pluralize

NO_SITE: Final = "somewhere"


def shown(report: ReportData) -> list[tuple[int, Finding]]:
    """Return errors and warnings, worst first, each with its number in the report."""
    return [(number, finding) for number, finding in enumerate(report.findings, 1) if finding.severity != "note"]


def headline(finding: Finding, trace: TraceData) -> tuple[str, str, str]:
    """Return the first line's parts beside the site: how often, op (else the rule), devices; "" is left out."""
    op = trace.ops[finding.op].name if 0 <= finding.op < len(trace.ops) else finding.rule
    return f"{finding.count:,}×" if finding.count > 1 else "", op, " + ".join(finding.devices)


def sites(finding: Finding) -> list[tuple[str, Site, str]]:
    """Return where the culprit was born and moved: a label, the site, the cause's remark on it."""
    if finding.culprit is None:
        return []
    cause = CAUSES.get(finding.cause) if finding.cause and finding.severity == "error" else None
    born, moved = (cause.born_remark, cause.moved_remark) if cause else ("", "")
    found = (("Born", finding.culprit.born, born), ("Moved", finding.culprit.moved, moved))
    return [(label, site, remark) for label, site, remark in found if site]


def summary(report: ReportData) -> list[str]:
    """Return a sentence on each: ops in all, copies and syncs in all, notes; no count where nothing was recorded."""
    counts = [] if report.notes and not report.ledger else [_ops(report), *_copies_and_syncs(report)]
    return [*counts, *(f"devtrace: {note}" for note in report.notes)]


def _ops(report: ReportData) -> str:
    names, all_ops = list(report.trace.devices), report.trace.ops
    without_a_line = all_ops.ints("device")[all_ops.ints("site") < 0].tolist()
    ops = Counter(names[id] for id in without_a_line if id >= 0)
    for row in report.ledger:
        ops.update(row.ops)
    devices = ", ".join(f"{number:,} on {device}" for device, number in ops.most_common() if number)
    sign = "" if shown(report) else "✓ nothing to mend: "
    folded = f"; {report.trace.truncated:,} of them folded away" if report.trace.truncated else ""
    return f"{sign}{pluralize(sum(ops.values()), 'op')}{f' ({devices})' if devices else ''}{folded}"


def _copies_and_syncs(report: ReportData) -> list[str]:
    total = {name: sum(getattr(row, name) for row in report.ledger) for name in LEDGER_COUNTS}
    directions = (("h2d", "to a device"), ("d2h", "to the host"), ("d2d", "between devices"))
    counts = [f"{pluralize(total[name], 'copy', 'copies')} {where}" for name, where in directions if total[name]]
    counts += [pluralize(total["syncs"], "sync")] if total["syncs"] else []
    copied = f"; {format_bytes(total['bytes'])} copied" if total["bytes"] else ""
    return [", ".join(counts) + copied] if counts else []
