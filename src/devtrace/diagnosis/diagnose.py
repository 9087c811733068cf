"""Diagnosis: from a trace to its report.

    report = devtrace.diagnose(trace)

Rules for errors look at the ops that raised, rules for costs at the counts of the ledger, rules of jobs at all ranks.
A rule that fails is one line in the report and silences no other.
"""

from collections.abc import Iterable
from functools import partial

import numpy as np

from devtrace.costs.cost_findings import one_a_cost
from devtrace.costs.shares import with_shares
from devtrace.diagnosis import ending, ledger
from devtrace.diagnosis.diagnose_errors import failed_rule, run_rule
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding, LedgerRow, ReportData, Site, worst_first
from devtrace.diagnosis.rules.device_errors import device_errors
from devtrace.diagnosis.rules.ordered import COST_RULES, JOB_RULES
from devtrace.diagnosis.silence import unsilenced
from devtrace.diagnosis.store import report_of, with_report
from devtrace.jobs.ranks import Ranks
from devtrace.source.live_objects import Live
from devtrace.trace.tables import TraceData


def diagnose(trace: TraceData, live: Live | None = None) -> ReportData:
    """Return the report of a trace; one that carries its findings gives those.

    `live` gives the frames and objects of a program that is still there: names are then the user's own.
    """
    report = report_of(trace) if trace.findings is not None else _diagnosed(trace, live)
    return _with_the_jobs(report)


def _diagnosed(trace: TraceData, live: Live | None) -> ReportData:
    queries = TraceQueries(trace, live)
    findings: list[Finding] = []
    notes: list[str] = []
    rows: tuple[LedgerRow, ...] = ()
    run_rule(partial(device_errors, queries), device_errors.__name__, findings, notes)
    try:
        tally = ledger.tally(queries)
        rows = ledger.rows(queries, tally)
    except Exception as fault:  # noqa: BLE001 (whatever it is, the trace is still shown)
        notes.append(failed_rule("ledger", fault))
    else:
        for slug, find in COST_RULES.items():
            run_rule(partial(find, queries, tally), slug, findings, notes)
    shown, silenced = unsilenced(queries, _without_explained(findings))
    found = with_shares(queries, one_a_cost(queries, shown))
    is_clear = not notes and ending.is_clear(queries, rows)
    end = {"closing": ending.closing(queries, found), "all_clear": is_clear}
    return with_report(trace, found, rows, [*notes, *silenced], live, **end)


def _without_explained(findings: list[Finding]) -> list[Finding]:
    """Leave out a module in two halves where an error is about the line that made one half."""
    explained = {_line(site) for site in _sites_of_errors(findings)}
    return [each for each in findings if each.rule != "split-module" or _line(each.site) not in explained]


def _line(site: Site | None) -> tuple[str, str | None, int] | None:
    return (site.file, site.cell_id, site.line) if site is not None else None


def _sites_of_errors(findings: Iterable[Finding]) -> set[Site | None]:
    errors = [each for each in findings if each.severity == "error"]
    return {each.site for each in errors} | {each.culprit.born for each in errors if each.culprit is not None}


def _with_the_jobs(report: ReportData) -> ReportData:
    """Add what only the ranks together show, unless the trace carries it, or an error tells the same."""
    queries = TraceQueries(report.trace)
    ranks = Ranks(queries)
    if len(np.unique(report.trace.threads.ints("rank"))) < 2:
        return report
    found: list[Finding] = []
    notes: list[str] = []
    for slug, find in JOB_RULES.items():
        run_rule(partial(find, queries, ranks), slug, found, notes)
    known = {(each.rule, each.site) for each in report.findings}
    explained = _sites_of_errors(report.findings)
    new = [each for each in found if (each.rule, each.site) not in known and each.site not in explained]
    if not new and not notes:
        return report
    return with_report(report.trace, worst_first((*report.findings, *new)), report.ledger, notes)
