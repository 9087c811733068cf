"""What only the ranks of a job together show, added to the report of their one trace."""

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding, ReportData, sites_of_errors, worst_first
from devtrace.diagnosis.rules.run_rule import run_rule
from devtrace.diagnosis.store import with_report
from devtrace.features import offers
from devtrace.jobs.ranks import Ranks


def with_findings_of_the_job(report: ReportData) -> ReportData:
    """Add what no rank alone shows, unless the trace carries it, or an error tells the same."""
    queries = TraceQueries(report.trace)
    ranks = Ranks(queries)
    if len(np.unique(report.trace.threads.ints("rank"))) < 2:
        return report
    found: list[Finding] = []
    notes: list[str] = []
    for slug, load in offers("job rule").items():
        run_rule(load, (queries, ranks), slug, found, notes)
    known = {(each.rule, each.site) for each in report.findings}
    explained = sites_of_errors(report.findings)
    new = [each for each in found if (each.rule, each.site) not in known and each.site not in explained]
    if not new and not notes:
        return report
    return with_report(report.trace, worst_first((*report.findings, *new)), report.ledger, notes)
