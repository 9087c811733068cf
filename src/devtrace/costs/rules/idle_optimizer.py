"""idle-optimizer: steps that never found a gradient, for the optimizer holds tensors that the model has no longer.

It was built before the model was copied, or its parameters replaced. `.to()` alone keeps the parameters: that is fine.

    optimizer = SGD(net.parameters()); net = copy.deepcopy(net)     # bad: it trains what was copied
    net = copy.deepcopy(net); optimizer = SGD(net.parameters())     # good
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.ledger import Tally
from devtrace.trace.ids import SiteId
from devtrace.words.catalogue import sentence

OFTEN: Final = 3
"""Fewer steps in vain may be a start: a step before the first backward pass."""


@dataclass(frozen=True, slots=True)
class IdleOptimizer:
    """An optimizer that never found a gradient: the row of its step's site, and how often it was there."""

    site: SiteId
    steps: int


def idle_optimizers(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    trained = bool(queries.is_phase("backward").any())
    for idle in queries.snapshot.facts_of(IdleOptimizer) if trained else ():
        if idle.steps >= OFTEN:
            yield Finding(
                rule="idle-optimizer",
                severity="warning",
                site=queries.site(queries.user(idle.site)),
                count=idle.steps,
                message=sentence("idle-optimizer.message", count=idle.steps),
                help=sentence("idle-optimizer.help"),
            )
