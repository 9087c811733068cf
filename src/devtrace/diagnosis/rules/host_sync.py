"""host-sync: the host waits for a device to read a value.

Every site is counted. What repeats with the steps of a loop is a warning, however it is written and wherever the value
goes. It is none where the host goes on by it: the end of a loop, a token or an action that was picked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from devtrace.diagnosis.evidence import reads
from devtrace.diagnosis.evidence.steps import Pace, Steps
from devtrace.diagnosis.evidence.trace_queries import Rows, TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.ledger import Tally, waits
from devtrace.diagnosis.rules import package_line
from devtrace.diagnosis.rules.rule import CostRule
from devtrace.words.text_format import pluralize

OFTEN: Final = 10
"""Reading a loss now and then is normal; a warning needs a loop that waits at least this many times."""
STEPS: Final = 5
"""In so many steps, or more."""
_LATER: Final = "read it every N steps, or once after the loop"


def host_syncs(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    waiting = np.flatnonzero(waits(queries))
    sites = queries.cost_users[waiting]
    steps = Steps(queries)
    for site in tally.sites("syncs"):
        yield _finding(steps, site, waiting[sites == site], int(tally["syncs"][site]))


RULE: Final = CostRule(
    slug="host-sync",
    meaning="`.item()`, a condition, a mask: the program waits for the device, again and again",
    find=host_syncs,
)


@dataclass(frozen=True)
class _Needless:
    """Waits of each step that nothing needs then, by the line that they come from: the most frequent first."""

    ops: tuple[Rows, ...]
    lines: tuple[int, ...]
    steps: int

    @property
    def count(self) -> int:
        return sum(map(len, self.ops))


def _finding(steps: Steps, site: int, ops: Rows, times: int) -> Finding:
    queries = steps.queries
    needless = _needless(steps, site, ops, times)
    is_habit = needless.count * times >= OFTEN * len(ops) > 0 and needless.steps >= STEPS
    line = needless.lines[0] if needless.lines else -1
    found = queries.source_node(line)
    words, help = (", to read a value in each step", _LATER) if needless.lines else (", to read a value", "")
    if is_habit and found is not None:
        words, help = reads.purpose(found)
    devices = sorted({queries.device_names[device] for device in queries.trace.ops.ints("device")[ops]})
    what = f"The host waited for {' and '.join(devices) or 'the device'} {pluralize(times, 'time')} here"
    return Finding(
        rule="host-sync",
        severity="warning" if is_habit else "note",
        cause="",
        devices=tuple(devices),
        site=queries.site(site),
        op=int(ops[0]) if len(ops) else -1,
        count=times,
        message=f"{what}{words}.{package_line.remark(queries, line, len(needless.lines) - 1)}",
        help=package_line.advice(queries, line, help),
        ops=tuple(ops.tolist()),
    )


def _needless(steps: Steps, site: int, ops: Rows, times: int) -> _Needless:
    found = []
    for line, at in package_line.parts(steps.queries, ops):
        part = ops[at]
        pace = _pace_of_needless(steps, line, part, round(times * len(part) / len(ops)))
        if pace is not None and (line == site or steps.runs_again(site, part)):
            found.append((part, line, pace.steps))
    return _Needless(
        tuple(part for part, _, _ in found),
        tuple(line for _, line, _ in found),
        max((steps for _, _, steps in found), default=0),
    )


def _pace_of_needless(steps: Steps, line: int, ops: Rows, times: int) -> Pace | None:
    """Return the pace of one line's waits, if they are of each step and nothing needs them then."""
    queries, first = steps.queries, int(ops[0])
    found = queries.source_node(line)
    if found is None or not reads.is_of_the_line(queries, found, first) or reads.is_a_choice(queries, first):
        return None
    pace = steps.pace(ops, found, times)
    return pace if pace.is_of_each_step and (pace.trains or not reads.decides_the_loop(found)) else None
