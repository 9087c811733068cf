"""The report of errors alone, for a trace whose other ops were read from the source: it needs no rule for costs."""

from collections.abc import Callable, Iterable
from functools import partial

from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding, ReportData, worst_first
from devtrace.diagnosis.rules.device_errors import device_errors
from devtrace.diagnosis.store import with_report
from devtrace.source.live_objects import Live
from devtrace.trace.tables import TraceData
from devtrace.words.catalogue import sentence


def diagnose_errors(trace: TraceData, live: Live) -> ReportData:
    """Return the report of the errors alone."""
    findings: list[Finding] = []
    notes: list[str] = []
    run_rule(partial(device_errors, TraceQueries(trace, live)), device_errors.__name__, findings, notes)
    return with_report(trace, worst_first(findings), (), notes, live)


def run_rule(find: Callable[[], Iterable[Finding]], name: str, findings: list[Finding], notes: list[str]) -> None:
    try:
        findings += find()
    except Exception as fault:  # noqa: BLE001 (whatever it is, other rules go on)
        notes.append(failed_rule(name, fault))


def failed_rule(name: str, fault: Exception) -> str:
    return sentence("report.rule-failed", name=name.replace("_", " "), fault=f"{type(fault).__name__}: {fault}")
