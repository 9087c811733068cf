"""Diagnosis: from a trace to its report.

    report = devtrace.diagnose(trace)

Rules for errors look at the ops that raised, rules for costs at the counts of the ledger. Features bring rules, and
change what was found.
A rule that fails is one line in the report and silences no other.
"""

from dataclasses import replace

import numpy as np

from devtrace.diagnosis import ending, ledger
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding, LedgerRow, ReportData, worst_first
from devtrace.diagnosis.rules.error_rules import device_errors
from devtrace.diagnosis.rules.run_rule import failed_rule, left_out, run_rule
from devtrace.diagnosis.saved_case import Case
from devtrace.diagnosis.silence import unsilenced
from devtrace.diagnosis.store import report_of, with_report
from devtrace.features import offered, offers
from devtrace.source.saved_files import reading
from devtrace.source.snapshot import Snapshot
from devtrace.trace.subset import cut
from devtrace.trace.tables import TraceData


def diagnose(case: Case) -> ReportData:
    """Return the report of a case; if its trace carries findings, those."""
    with reading(case.files):
        report = _report_of(case)
    for add in offered("report").values():
        report = add(report)
    return report


def _report_of(case: Case) -> ReportData:
    if case.trace.findings is not None:
        return report_of(case.trace)
    saw_ops = case.snapshot.evidence.saw_ops
    return (_diagnosed if saw_ops else _diagnosed_error)(case.trace, case.snapshot)


def _diagnosed(trace: TraceData, snapshot: Snapshot) -> ReportData:
    queries = TraceQueries(trace, snapshot)
    findings: list[Finding] = []
    notes = left_out()
    rows: tuple[LedgerRow, ...] = ()
    run_rule(lambda: device_errors, (queries, notes), "device errors", findings, notes)
    try:
        tally = ledger.tally(queries)
        rows = ledger.rows(queries, tally)
    except Exception as fault:  # noqa: BLE001 (whatever it is, the trace is still shown)
        notes.append(failed_rule("ledger", fault))
    else:
        for slug, load in offers("cost rule").items():
            run_rule(load, (queries, tally), slug, findings, notes)
    unsorted, silenced = unsilenced(queries, findings)
    shown = worst_first(unsorted)
    for change in offered("findings").values():
        shown = change(queries, shown)
    is_clear = not notes and ending.is_clear(queries, rows)
    end = {"closing": ending.closing(queries, shown), "all_clear": is_clear}
    return with_report(trace, shown, rows, [*notes, *silenced], snapshot, **end)


def _diagnosed_error(trace: TraceData, snapshot: Snapshot) -> ReportData:
    """Return the report of the failed op alone: the ops that were read from the source are not of a trace."""
    findings: list[Finding] = []
    notes = left_out()
    run_rule(lambda: device_errors, (TraceQueries(trace, snapshot), notes), "device errors", findings, notes)
    report = with_report(trace, worst_first(findings), (), notes, snapshot)
    failed = np.zeros(len(trace.ops), dtype=bool)
    failed[trace.errors.ints("op")] = True
    return report_of(replace(cut(report.trace, failed), truncated=trace.truncated))
