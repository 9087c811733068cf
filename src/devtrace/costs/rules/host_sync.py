"""host-sync: the host waits for a device to read a value.

Every line is counted. What repeats with the steps of a loop is a warning, however it is written and wherever the value
goes. It is none where the host goes on by it: the end of a loop, a token or an action that was picked. What a package
reads is counted at the line that calls it.

    total += loss.item()            # bad: the CPU waits in each step
    total += loss.detach()          # good: `total.item()` once, below the loop
"""

from collections.abc import Iterator

from devtrace.costs.advice import SINGLY, WAITS, Needless, advised
from devtrace.costs.cost_findings import finding, findings
from devtrace.costs.reads import is_asked_for, is_needless, kept
from devtrace.costs.repeated_costs import OFTEN, STEPS, Cost
from devtrace.diagnosis.evidence.source_text import brief
from devtrace.diagnosis.evidence.trace_queries import NOWHERE, TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.ledger import Tally
from devtrace.words.catalogue import sentence


def host_syncs(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    return findings(queries, tally, "syncs", _judged, _finding)


def _finding(cost: Cost, needless: Needless | None) -> Finding:
    """Word the waits of one line."""
    code, pace = brief(cost.text), needless.cost.pace if needless else None
    unneeded = needless.why if needless else sentence("host-sync.to-read")
    is_asked = bool(cost.ops) and all(is_asked_for(cost.queries, op) for op in cost.ops)
    message = sentence(
        "host-sync.message",
        what=sentence("host-sync.code", code=code) if code else sentence("host-sync.line"),
        device=sentence("host-sync.devices", devices=cost.devices) if cost.devices else sentence("host-sync.device"),
        count=cost.count,
        often=sentence("host-sync.once" if cost.count == pace.steps else "host-sync.each")
        if pace and pace.is_of_each_step
        else "",
        purpose=sentence("host-sync.as-asked") if is_asked else unneeded,
    )
    return finding("host-sync", cost, needless, message)


def _judged(cost: Cost) -> Needless | None:
    """Return the waits of each step that nothing needs then: a warning where the loop is long and waits often."""
    if cost.found is NOWHERE:
        return None
    singly = advised(cost, SINGLY)
    if singly is not None or not is_needless(cost):
        return singly
    severity = "warning" if cost.count >= OFTEN and cost.pace.steps >= STEPS else "note"
    return advised(cost, WAITS, kept=kept(cost), severity=severity)
