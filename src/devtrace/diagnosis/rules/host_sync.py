"""host-sync: the host waits for a device to read a value.

Every site is counted. What repeats with the steps of a loop is a warning, however it is written and wherever the value
goes. It is none where the host goes on by it: the end of a loop, a token or an action that was picked, a branch of a
package's. What a package reads while nothing trains is a note too: its caller cannot spare it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from devtrace.diagnosis.evidence import reads
from devtrace.diagnosis.evidence.steps import Pace, Steps
from devtrace.diagnosis.evidence.trace_queries import Rows, SourceNode, TraceQueries
from devtrace.diagnosis.findings import Edit, Finding
from devtrace.diagnosis.fixes.pick_by_where import pick_by_where
from devtrace.diagnosis.fixes.read_after_loop import read_after_loop
from devtrace.diagnosis.ledger import Tally, waits
from devtrace.diagnosis.rules import package_line
from devtrace.diagnosis.rules.rule import CostRule
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import shorten

OFTEN: Final = 10
"""Reading a loss now and then is normal; a warning needs a loop that waits at least this many times."""
STEPS: Final = 5
"""In so many steps, or more."""
_LONGEST: Final = 60
"""Characters of the code that a message begins with."""


def host_syncs(queries: TraceQueries, tally: Tally) -> Iterator[Finding]:
    waiting = np.flatnonzero(waits(queries))
    sites = queries.cost_users[waiting]
    steps = Steps(queries)
    of_packages: list[_Waits] = []
    for site in tally.sites("syncs"):
        ops, times = waiting[sites == site], int(tally["syncs"][site])
        needless = _needless(steps, site, ops, times)
        habits = _habits(needless)
        there = [each for each in habits if each.line != site]
        of_packages += there
        rest, left = _without(ops, there), times - sum(each.count for each in there)
        if left:
            here = [each for each in habits if each.line == site]
            others = [each for each in needless if each not in there]
            yield _finding(queries, [_Waits(site, rest, left)], here or others, is_habit=bool(here))
    for same in package_line.by_site(queries, of_packages, lambda each: each.line):
        yield _finding(queries, same, same, is_habit=True)


RULE: Final = CostRule(
    slug="host-sync",
    find=host_syncs,
)


@dataclass(frozen=True, eq=False)
class _Waits:
    """Waits of one line, a package's or the user's. `steps` is in how many steps, where nothing needs them then."""

    line: int
    ops: Rows
    count: int
    steps: int = 0


def _finding(queries: TraceQueries, waits: list[_Waits], needless: list[_Waits], *, is_habit: bool) -> Finding:
    """Word the waits of one line: the user's, or of a package's line to which several lines led."""
    ops = np.sort(np.concatenate([each.ops for each in waits]))
    times, line = sum(each.count for each in waits), needless[0].line if needless else -1
    found = queries.source_node(line)
    words, help = sentence("host-sync.to-read"), sentence("host-sync.later") if needless else ""
    edits = tuple[Edit, ...]()
    if len(ops) and all(reads.is_asked_for(queries, op) for op in ops.tolist()):
        words = sentence("host-sync.as-asked")
    elif needless and found is not None:
        words, help = reads.purpose(queries, found, int(ops[0]))
        fix = read_after_loop(queries, line, ops) or pick_by_where(queries, line, ops)
        help, edits = (fix.help, fix.edits) if fix is not None else (help, ())
    devices = sorted({queries.device_names[device] for device in queries.trace.ops.ints("device")[ops]})
    lines = [each.line for each in waits]
    remark = package_line.remark(queries, lines) or package_line.remark_below(queries, line)
    code = shorten(reads.expression(queries, waits[0].line), _LONGEST)
    message = sentence(
        "host-sync.message",
        what=sentence("host-sync.code", code=code) if code else sentence("host-sync.line"),
        device=sentence("host-sync.devices", devices=devices) if devices else sentence("host-sync.device"),
        count=times,
        often=_often(times, needless),
        purpose=words,
    )
    return Finding(
        rule="host-sync",
        severity="warning" if is_habit else "note",
        cause="",
        devices=tuple(devices),
        site=queries.site(waits[0].line),
        op=int(ops[0]) if len(ops) else -1,
        count=times,
        message=message + remark,
        help=package_line.advice(queries, line, help),
        edits=edits,
        ops=tuple(ops.tolist()),
    )


def _often(times: int, needless: list[_Waits]) -> str:
    if not needless:
        return ""
    return sentence("host-sync.once" if times == sum(each.steps for each in needless) else "host-sync.each")


def _needless(steps: Steps, site: int, ops: Rows, times: int) -> list[_Waits]:
    """Return the waits of each step that nothing needs then, by the line they come from: the most frequent first."""
    found = []
    for line, at, count in package_line.lines_of(steps.queries, ops, "syncs", times):
        pace = _pace_of_needless(steps, line, ops[at], count)
        if pace is not None and (_is_of_the_users(steps, site, line, ops[at]) or steps.runs_again(site, ops[at])):
            found.append(_Waits(line, ops[at], count, pace.steps))
    return found


def _is_of_the_users(steps: Steps, site: int, line: int, ops: Rows) -> bool:
    """Return whether the user's own line waits, and no loop that torch has under it."""
    found = steps.queries.source_node(site)
    is_torchs = found is not None and reads.is_within_torch(steps.queries, found, int(ops[0]))
    return line == site and not is_torchs


def _habits(needless: list[_Waits]) -> list[_Waits]:
    """Return those of a loop that waits often."""
    long = [each for each in needless if each.steps >= STEPS]
    return long if sum(each.count for each in needless) >= OFTEN else []


def _without(ops: Rows, taken: list[_Waits]) -> Rows:
    found: Rows = np.setdiff1d(ops, np.concatenate([each.ops for each in taken])) if taken else ops
    return found


def _pace_of_needless(steps: Steps, line: int, ops: Rows, times: int) -> Pace | None:
    """Return the pace of one line's waits, if they are of each step and nothing needs them then."""
    queries, first = steps.queries, int(ops[0])
    found = queries.source_node(line)
    if (
        found is None
        or reads.is_asked_for(queries, first)
        or not reads.is_of_the_line(queries, found, first)
        or reads.is_a_choice(queries, first)
    ):
        return None
    pace = steps.pace(ops, found, times)
    if not pace.is_of_each_step or _is_as_the_package_likes(steps, line, ops, found, pace, times):
        return None
    return pace if pace.trains or not reads.decides_the_loop(found) else None


def _is_as_the_package_likes(steps: Steps, line: int, ops: Rows, found: SourceNode, pace: Pace, times: int) -> bool:
    """Return whether a package's line reads what its caller cannot spare.

    It asks for a branch or a size, not for each of many things in a step, or no step of the caller's trains.
    """
    if not steps.queries.package(line):
        return False
    is_asked = reads.is_gone_on_by(steps.queries, found, int(ops[0]))
    asks_each = times > pace.steps and reads.is_in_a_loop(found)
    return (is_asked and not asks_each) or not pace.trains or steps.are_of_a_package(ops)
