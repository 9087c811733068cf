"""host-to-device-copy: data that a line copies from the CPU to a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.ledger import Tally
from devtrace.diagnosis.rules import copies_of_a_line
from devtrace.diagnosis.rules.copies_of_a_line import AGAIN, CopiesOfALine, Habit, is_of_ddp
from devtrace.diagnosis.rules.rule import CostRule


def copies_to_device(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    return copies_of_a_line.findings(queries, tally, "h2d", _FINDERS, _finding)


RULE: Final = CostRule(
    slug="host-to-device-copy",
    meaning="the same tensor, or a few bytes at a time, copied to a device over and over",
    find=copies_to_device,
)


def _finding(copies: CopiesOfALine, habit: Habit | None, lines: list[int]) -> Finding:
    habit = habit or _left_to_ddp(copies)
    return copies_of_a_line.finding("host-to-device-copy", copies, "to the device", habit, lines, _unpinned(copies))


def _numbers(copies: CopiesOfALine) -> Habit | None:
    """Find single numbers of the host's that are made into tensors and copied in each step."""
    queries = copies.queries
    taken = [queries.inputs(op) or queries.outputs(op) for op in copies.ops]
    if any(not rows or queries.dims[rows[0]] != 0 for rows in taken) or not copies_of_a_line.of_each_step(copies):
        return None
    help = "use the number as it is, or make the tensor on the device: torch.full((), value, device=device)"
    return Habit("a single number in each step.", help)


_FINDERS: Final = (copies_of_a_line.of_one_tensor, _numbers, copies_of_a_line.of_single_elements)


def _left_to_ddp(copies: CopiesOfALine) -> Habit | None:
    """Find inputs that only DistributedDataParallel moves, while the same function moves others of the step by hand."""
    queries, ops, site = copies.queries, copies.ops, copies.queries.site(copies.site)
    if copies.count < AGAIN or not ops or not all(is_of_ddp(queries, op) for op in ops[:20]):
        return None
    counts = copies.tally["h2d"]
    others = [other for other in copies.tally.sites("h2d") if other != copies.site]
    stepwise = [queries.site(other) for other in others if copies.count % int(counts[other]) == 0]
    by_hand = [other for other in stepwise if other and site and other.function == site.function]
    if not by_hand:
        return None
    return Habit(
        f"DistributedDataParallel moves them; other inputs are moved by hand ({by_hand[-1]}). Without it this fails.",
        f"move the rest of the batch at {by_hand[-1]} too",
    )


def _unpinned(copies: CopiesOfALine) -> str:
    table = copies.queries.trace.copies
    asked = table.ints("non_blocking")[copies.rows] > 0
    pageable = table.ints("pinned")[copies.rows] == 0
    if bool((asked & pageable).any()):
        return "; non_blocking has no effect from memory that is not pinned (DataLoader(pin_memory=True))"
    return ""
