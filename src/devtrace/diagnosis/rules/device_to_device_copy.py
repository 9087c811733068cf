"""device-to-device-copy: data that a line copies between devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.ledger import Tally
from devtrace.diagnosis.rules import copies_of_a_line
from devtrace.diagnosis.rules.copies_of_a_line import CopiesOfALine, Habit
from devtrace.diagnosis.rules.rule import CostRule


def copies_between_devices(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    return copies_of_a_line.findings(queries, tally, "d2d", _FINDERS, _finding)


RULE: Final = CostRule(
    slug="device-to-device-copy",
    find=copies_between_devices,
)


_FINDERS: Final = (copies_of_a_line.of_one_tensor, copies_of_a_line.of_single_elements)


def _finding(copies: CopiesOfALine, habit: Habit | None, lines: list[int]) -> Finding:
    return copies_of_a_line.finding("device-to-device-copy", copies, habit, lines)
