"""host-sync: the host waits for a device to read a value.

Every line is counted. What repeats with the steps of a loop is a warning, however it is written and wherever the value
goes. It is none where the host goes on by it: the end of a loop, a token or an action that was picked, a branch of a
package's. What a package reads while nothing trains is a note too: its caller cannot spare it, unless it reads element
after element, or makes text of a tensor that nobody prints.

    total += loss.item()            # bad: the CPU waits in each step
    total += loss.detach()          # good: `total.item()` once, below the loop
"""

from collections.abc import Iterator, Sequence

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
    return findings(queries, tally, "syncs", _needless_waits, _finding)


def _finding(cost: Cost, needless: Sequence[Needless], remark: str) -> Finding:
    """Word the waits of one line."""
    code, first = brief(cost.text), needless[0] if needless else None
    purpose = first.why if first else sentence("host-sync.to-read")
    is_asked = bool(cost.ops) and all(is_asked_for(cost.queries, op) for op in cost.ops)
    is_paced = any(part.cost.pace.is_of_each_step for part in needless)
    steps = sum(part.cost.pace.steps for part in needless)
    message = sentence(
        "host-sync.message",
        what=sentence("host-sync.code", code=code) if code else sentence("host-sync.line"),
        device=sentence("host-sync.devices", devices=cost.devices) if cost.devices else sentence("host-sync.device"),
        count=cost.count,
        often=sentence("host-sync.once" if cost.count == steps else "host-sync.each") if is_paced else "",
        purpose=sentence("host-sync.as-asked") if is_asked else purpose,
    )
    return finding("host-sync", cost, first, message + remark)


def _needless_waits(parts: list[Cost]) -> list[Needless]:
    """Return the waits that no step needs: elements that are read singly, then others; a note in a short loop."""
    parts = [part for part in parts if part.place is not NOWHERE]
    singly = [advised(part, SINGLY) for part in parts]
    others = [part for part, needless in zip(parts, singly, strict=True) if needless is None and is_needless(part)]
    is_often = sum(part.count for part in others) >= OFTEN
    waits = [
        advised(part, WAITS, kept=kept(part), severity="warning" if is_often and part.pace.steps >= STEPS else "note")
        for part in others
    ]
    return [needless for needless in (*singly, *waits) if needless is not None]
