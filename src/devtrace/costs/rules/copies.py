"""host-to-device-copy, device-to-host-copy, device-to-device-copy: data that a line copies, by direction.

Each new batch is, and results are. Needless is what is the same each time, made of no data, a single number, many times
a few bytes; what goes back where it came from; what was sent in vain; and the values of each step.

    loss = loss + torch.tensor(0.01).to(device) * penalty       # bad: a number is copied in each step
    loss = loss + 0.01 * penalty                                # good: a number of Python's needs no copy
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from devtrace.costs.advice import AS_USUAL, BETWEEN_DEVICES, TO_DEVICE, TO_HOST, Needless, Row, advised
from devtrace.costs.cost_findings import finding, findings
from devtrace.costs.repeated_costs import Cost
from devtrace.costs.steps import FEWEST
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.ledger import Tally
from devtrace.diagnosis.slugs import RuleSlug
from devtrace.source.matching import called_name
from devtrace.words.catalogue import family, sentence

_COPIES: Final = family("copy.*", "copy.h2d", "copy.d2h", "copy.d2d")


def _copies(
    rule: RuleSlug, direction: str, rows: Sequence[Row], usual: Sequence[Row] = ()
) -> Callable[[TraceQueries, Tally], Iterator[Finding]]:
    """Return the rule for copies of a direction: `rows` of the table are for needless ones, `usual` for the others."""

    def judge(parts: list[Cost]) -> list[Needless]:
        judged = [] if len(parts) == 1 and _is_of_torchs_optimizer(parts[0]) else parts
        return [needless for part in judged if (needless := advised(part, rows)) is not None]

    def word(cost: Cost, needless: Sequence[Needless], remark: str) -> Finding:
        first = needless[0] if needless else advised(cost, usual, severity="note")
        if needless:
            why = sentence("copy.why", habit=needless[0].why) + remark
        else:
            is_paced = cost.count >= FEWEST and cost.is_of_each_step
            is_once = is_paced and cost.count == cost.pace.steps
            pace = sentence("copy.pace-once" if is_once else "copy.pace-each") if is_paced else ""
            why = sentence("copy.pace", pace=pace, remark=first.why if first else sentence("copy.nothing"))
        message = sentence(_COPIES[direction], count=cost.count, size=cost.all_bytes, why=why)
        return finding(rule, cost, first, message)

    return lambda queries, tally: findings(queries, tally, direction, judge, word)


def _is_of_torchs_optimizer(cost: Cost) -> bool:
    """Return whether torch's own optimizer makes the copies: all its ops are at the line of `step`."""
    is_in_optimizer = bool(cost.queries.is_phase("optimizer")[cost.ops].all())
    return is_in_optimizer and cost.is_of_the_user and called_name(cost.node) == "step"


host_to_device_copies: Final = _copies("host-to-device-copy", "h2d", TO_DEVICE, AS_USUAL)
device_to_host_copies: Final = _copies("device-to-host-copy", "d2h", TO_HOST)
device_to_device_copies: Final = _copies("device-to-device-copy", "d2d", BETWEEN_DEVICES)
