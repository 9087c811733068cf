"""The report of errors alone, for a trace whose other ops were read from the source: it needs no rule for costs."""

from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding, ReportData, worst_first
from devtrace.diagnosis.rules.device_errors import device_errors
from devtrace.diagnosis.rules.run_rule import left_out, run_rule
from devtrace.diagnosis.store import with_report
from devtrace.source.live_objects import Live
from devtrace.trace.tables import TraceData


def diagnose_errors(trace: TraceData, live: Live) -> ReportData:
    """Return the report of the errors alone."""
    findings: list[Finding] = []
    notes = left_out()
    run_rule(lambda: device_errors, (TraceQueries(trace, live), notes), "device errors", findings, notes)
    return with_report(trace, worst_first(findings), (), notes, live)
