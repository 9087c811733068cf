"""The parts of a report that its forms lay out: findings to show, headlines, summary sentences."""

from collections import Counter
from typing import Final

from devtrace.diagnosis.findings import Finding, ReportData, Site, estimated_cost, offered_fix
from devtrace.features import offered
from devtrace.report import palette
from devtrace.trace.columns import LEDGER_COUNTS
from devtrace.trace.curve import Curve
from devtrace.trace.tables import TraceData
from devtrace.words.catalogue import comma, family, sentence

MOST_NOTES: Final = 5
MEMORY_KINDS: Final = family(
    "memory.*", "memory.parameter", "memory.buffer", "memory.optimizer-state", "memory.gradient", "memory.named",
    "memory.activation", "memory.temporary",
)  # fmt: skip


def shown(report: ReportData) -> list[tuple[int, Finding]]:
    """Return errors and warnings, worst first, and who holds memory, each with its number in the report."""
    numbered = enumerate(report.findings, 1)
    return [(number, finding) for number, finding in numbered if finding.severity != "note" or finding.holders]


def headline(finding: Finding, trace: TraceData) -> tuple[str, str, str]:
    """Return the first line's parts beside the site: how often, op (else the rule), devices; "" is left out."""
    op = (trace.ops[finding.op].name if 0 <= finding.op < len(trace.ops) else "") or finding.rule
    return f"{finding.count:,}×" if finding.count > 1 else "", op, " + ".join(finding.devices)


def advice(finding: Finding) -> dict[str, str]:
    """Return by label the fix, and what came of it if it was run."""
    grade = finding.edits[0].grade if finding.edits else "not tried"
    label = "label.proven" if grade == "proven" else "label.tried"
    graded = {sentence(label): finding.proof} if finding.proof and grade != "not tried" else {}
    return ({sentence("label.fix"): offered_fix(finding)} if finding.help else {}) | graded


def where(site: Site | None) -> str:
    return str(site) if site is not None else sentence("report.no-line")


def summary(report: ReportData) -> list[str]:
    """Return a sentence on each: all ops, all copies and syncs, advice, notes; no count where nothing was recorded."""
    counts = [] if only_failed(report) else [_sentence_on_ops(report), *_copies_and_syncs(report)]
    closing = [report.trace.closing] if report.trace.closing else []
    of_features = [line for part in offered("report part").values() for line in part(report)]
    return [*closing, *counts, *of_features, *_advice(report), *([] if is_job(report) else _notes(report))]


def curves_of_limits(report: ReportData) -> list[Curve]:
    """Return the memory of the devices that a limit was set for, or of all if `memory=True` asked for it."""
    return [curve for curve in report.trace.memory if curve.limit or has_holders(report)]


def has_holders(report: ReportData) -> bool:
    return any(finding.holders for finding in report.findings)


def is_job(report: ReportData) -> bool:
    """Return whether a trace is of several ranks."""
    return len(set(report.trace.threads.ints("rank").tolist())) > 1


def of_the_job(report: ReportData) -> list[str]:
    """Return what comes first in the report of several ranks: who failed, who is missing, who did otherwise."""
    return _notes(report) if is_job(report) else []


def _notes(report: ReportData) -> list[str]:
    return [sentence("report.note", note=note) for note in report.notes]


def _advice(report: ReportData) -> list[str]:
    """Return what would be a warning in a longer loop, a line each, with what to do about it."""
    advised = [finding for finding in report.findings if finding.severity == "note" and finding.help]
    rest = [sentence("report.more", count=len(advised) - MOST_NOTES)] if len(advised) > MOST_NOTES else []
    return [*map(_advice_line, advised[:MOST_NOTES]), *rest, *_on_harmless_lines(report)]


def _on_harmless_lines(report: ReportData) -> list[str]:
    """Return a sentence on the lines that need no change, where another has a warning of what it costs."""
    warned = {finding.site for finding in report.findings if finding.severity == "warning" and estimated_cost(finding)}
    warned_lines = {(site.file, site.cell_id, site.line) for site in warned if site is not None}
    notes = [finding for finding in report.findings if finding.severity == "note" and not finding.help]
    harmless = {finding.site for finding in notes if finding.site is not None and estimated_cost(finding)}
    count = len({(site.file, site.cell_id, site.line) for site in harmless} - warned_lines)
    return [sentence("report.harmless", sign=palette.sign("note"), count=count)] if warned and count else []


def _advice_line(finding: Finding) -> str:
    return sentence(
        "report.advice",
        sign=palette.sign(finding.severity),
        where=where(finding.site),
        message=finding.message,
        label=sentence("label.fix"),
        help=offered_fix(finding),
    )


def only_failed(report: ReportData) -> bool:
    """Return whether nothing was recorded, and the trace has no op but the one that raised: its notes say so."""
    failed = set(report.trace.errors.ints("op").tolist())
    return bool(report.notes) and not report.ledger and failed.issuperset(range(len(report.trace.ops)))


def _sentence_on_ops(report: ReportData) -> str:
    names, all_ops = list(report.trace.devices), report.trace.ops
    without_a_line = all_ops.ints("device")[all_ops.ints("site") < 0].tolist()
    ops = Counter(names[id] for id in without_a_line if id >= 0)
    for row in report.ledger:
        ops.update(row.ops)
    counts = ((count, device) for device, count in ops.most_common() if count)
    ran = [sentence("report.ops-of-device", count=count, device=device) for count, device in counts]
    folded = sentence("report.folded", count=report.trace.truncated) if report.trace.truncated else ""
    counted = (comma().join(ran) or sentence("report.no-ops")) + folded
    return sentence("report.clean" if report.all_clear else "report.ops", ops=counted)


_COUNT_KEYS: Final = family(
    "report.count-*", "report.count-h2d", "report.count-d2h", "report.count-d2d", "report.count-syncs"
)


def _copies_and_syncs(report: ReportData) -> list[str]:
    total = {name: sum(getattr(row, name) for row in report.ledger) for name in LEDGER_COUNTS}
    counts = [sentence(key, count=total[kind]) for kind, key in _COUNT_KEYS.items() if total[kind]]
    copied = sentence("report.copied", size=total["bytes"]) if total["bytes"] else ""
    return [sentence("report.counts", counts=comma().join(counts), copied=copied)] if counts else []
