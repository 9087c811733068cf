"""What went wrong, where it came from and what to do: rules over a trace.

    report = devtrace.diagnose(trace)

Each rule is a plain function; the two lists below are all of them. Rules for errors look at the ops that raised, rules
for costs at the counts of the ledger. A rule that fails is one line in the report and silences no other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from devtrace.diagnose import comparisons, compute, copies, ledger, mismatch, optimizers, syncs
from devtrace.diagnose.facts import Facts
from devtrace.diagnose.ledger import Tally
from devtrace.diagnose.store import report_of, with_report
from devtrace.report import Finding, LedgerRow, Report, worst_first
from devtrace.trace import Trace

if TYPE_CHECKING:
    from devtrace.live_objects import Live

ERRORS: Final[tuple[Callable[[Facts], Iterable[Finding]], ...]] = (mismatch.device_errors,)

COSTS: Final[tuple[Callable[[Facts, Tally], Iterable[Finding]], ...]] = (
    syncs.host_syncs,
    copies.copies_to_device,
    copies.copies_to_host,
    copies.copies_between_devices,
    compute.left_on_host,
    compute.split_modules,
    comparisons.compared_with_a_string,
    optimizers.idle_optimizers,
)


def diagnose(trace: Trace, live: Live | None = None) -> Report:
    """The report of a trace; made once, then carried by the trace.

    `live` gives the frames and objects of a program that is still there: names are then the user's own.
    """
    made = trace.__dict__.get("_report")
    if isinstance(made, Report):
        return made
    report = report_of(trace) if trace.findings is not None else _diagnosed(trace, live)
    for carrier in (trace, report.trace):
        carrier.__dict__["_report"] = report
    return report


def _diagnosed(trace: Trace, live: Live | None) -> Report:
    facts = Facts(trace, live)
    findings: list[Finding] = []
    notes: list[str] = []
    rows: tuple[LedgerRow, ...] = ()
    for rule in ERRORS:
        _run(partial(rule, facts), rule.__name__, findings, notes)
    try:
        tally = ledger.tally(facts)
        rows = ledger.rows(facts, tally)
    except Exception as fault:  # noqa: BLE001 (whatever it is, the trace is still shown)
        notes.append(_sentence("ledger", fault))
    else:
        for cost in COSTS:
            _run(partial(cost, facts, tally), cost.__name__, findings, notes)
    return with_report(trace, worst_first(findings), rows, notes)


def _run(rule: Callable[[], Iterable[Finding]], name: str, findings: list[Finding], notes: list[str]) -> None:
    try:
        findings += rule()
    except Exception as fault:  # noqa: BLE001 (as above)
        notes.append(_sentence(name, fault))


def _sentence(name: str, fault: Exception) -> str:
    return f"the diagnosis of {name.replace('_', ' ')} failed ({type(fault).__name__}: {fault}); the trace is complete"
