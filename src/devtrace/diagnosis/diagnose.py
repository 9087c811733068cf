"""What went wrong, where it came from and what to do: rules over a trace.

    report = devtrace.diagnose(trace)

Each rule is a plain function; the two lists below are all of them. Rules for errors look at the ops that raised, rules
for costs at the counts of the ledger. A rule that fails is one line in the report and silences no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from devtrace.diagnosis import ledger
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding, LedgerRow, ReportData, worst_first
from devtrace.diagnosis.ledger import Tally
from devtrace.diagnosis.rules import copies, cpu_compute, device_comparison, device_mismatch, host_sync, idle_optimizer
from devtrace.diagnosis.store import report_of, with_report
from devtrace.trace.tables import TraceData

if TYPE_CHECKING:
    from devtrace.source.live_objects import Live

ERRORS: Final[tuple[Callable[[TraceQueries], Iterable[Finding]], ...]] = (device_mismatch.device_errors,)

COSTS: Final[tuple[Callable[[TraceQueries, Tally], Iterable[Finding]], ...]] = (
    host_sync.host_syncs,
    copies.copies_to_device,
    copies.copies_to_host,
    copies.copies_between_devices,
    cpu_compute.left_on_host,
    cpu_compute.split_modules,
    device_comparison.compared_with_a_string,
    idle_optimizer.idle_optimizers,
)


def diagnose(trace: TraceData, live: Live | None = None) -> ReportData:
    """The report of a trace; one that carries its findings gives those.

    `live` gives the frames and objects of a program that is still there: names are then the user's own.
    """
    return report_of(trace) if trace.findings is not None else _diagnosed(trace, live)


def _diagnosed(trace: TraceData, live: Live | None) -> ReportData:
    queries = TraceQueries(trace, live)
    findings: list[Finding] = []
    notes: list[str] = []
    rows: tuple[LedgerRow, ...] = ()
    for rule in ERRORS:
        _run(partial(rule, queries), rule.__name__, findings, notes)
    try:
        tally = ledger.tally(queries)
        rows = ledger.rows(queries, tally)
    except Exception as fault:  # noqa: BLE001 (whatever it is, the trace is still shown)
        notes.append(_sentence("ledger", fault))
    else:
        for cost in COSTS:
            _run(partial(cost, queries, tally), cost.__name__, findings, notes)
    return with_report(trace, worst_first(findings), rows, notes)


def _run(rule: Callable[[], Iterable[Finding]], name: str, findings: list[Finding], notes: list[str]) -> None:
    try:
        findings += rule()
    except Exception as fault:  # noqa: BLE001 (as above)
        notes.append(_sentence(name, fault))


def _sentence(name: str, fault: Exception) -> str:
    return f"the diagnosis of {name.replace('_', ' ')} failed ({type(fault).__name__}: {fault}); the trace is complete"
