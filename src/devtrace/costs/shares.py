"""What a finding is of all that the program pays while its line runs: waits, copies and bytes; on a device time too.

`loss.item()` made the CPU wait ... These are 50% of the waits in that time.

That time is from the first to the last run of the line; lines that overlap share one time, so that shares add up to
100 % at most. What is alone in it has no share worth saying. What costs most comes first; what is nothing beside it
asks for no advice.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from devtrace.costs.cost_findings import one_a_cost
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding, Site, estimated_cost, sites_of_errors, worst_first
from devtrace.words.catalogue import sentence

_COPIES: Final = ("host-to-device-copy", "device-to-host-copy", "device-to-device-copy")
_NOTHING: Final = 0.05
"""Less than so much of the largest cost is nothing beside it."""


def told_once(queries: TraceQueries, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings of which each cost has one warning, with its share, and none is about a line with an error."""
    return with_shares(queries, one_a_cost(queries, _without_explained(list(findings))))


def _without_explained(findings: list[Finding]) -> list[Finding]:
    """Leave out a module in two halves where an error is about the line that made one half."""
    explained = {_line(site) for site in sites_of_errors(findings)}
    return [each for each in findings if each.rule != "split-module" or _line(each.site) not in explained]


def _line(site: Site | None) -> tuple[str, str | None, int] | None:
    return (site.file, site.cell_id, site.line) if site is not None else None


def with_shares(queries: TraceQueries, findings: Iterable[tuple[Finding, Sequence[Finding]]]) -> tuple[Finding, ...]:
    """Sort findings by what their fix is for, and add to each its share; of what is next to nothing the advice goes."""

    def own_cost(finding: Finding) -> float:
        return _stood_still(queries, finding) / 1_000 or estimated_cost(finding)

    def cost(finding: Finding) -> float:
        return costs[id(finding)]

    pairs = list(findings)
    costs = {id(finding): sum(map(own_cost, covered)) for finding, covered in pairs}
    found = worst_first((finding for finding, _ in pairs), cost)
    largest = max((cost(each) for each in found if each.severity == "warning"), default=0.0)
    return tuple(
        replace(each, help="", edits=())
        if each.severity == "note" and estimated_cost(each) and cost(each) < _NOTHING * largest
        else _with_share(queries, each, found)
        for each in found
    )


def _with_share(queries: TraceQueries, finding: Finding, findings: Iterable[Finding]) -> Finding:
    rules = ("host-sync",) if finding.rule == "host-sync" else _COPIES if finding.rule in _COPIES else ()
    if finding.severity != "warning" or finding.count < 2 or not finding.ops or not rules:
        return finding
    same = [each for each in findings if each.rule in rules and each.ops]
    first, last, half = next(time for time in _times_of(same) if time[0] <= min(finding.ops) <= time[1])

    def inside(each: Finding) -> float:
        ops = np.array(each.ops)
        runs_in_it = ((ops >= first) & (ops <= last)).any()
        return float(((ops >= first - half) & (ops <= last + half)).mean()) if runs_in_it else 0.0

    def share(amount: Callable[[Finding], float]) -> int:
        amounts = [amount(each) * inside(each) for each in same]
        return _percents(amounts)[same.index(finding)] if any(amounts) else 100

    shares = {"count": share(lambda each: each.count), "bytes": share(lambda each: each.bytes)}
    of_all = sentence("share.waits" if finding.rule == "host-sync" else "share.copies", **shares)
    words = of_all if min(shares.values()) < 100 else ""
    starts, stood = queries.trace.ops.ints("start"), _stood_still(queries, finding)
    passed = int(starts[last] - starts[first]) * finding.count / len(finding.ops)
    if stood and passed:
        words += sentence("share.time", time=int(stood), share=min(round(100 * stood / passed), 100))
    return replace(finding, message=finding.message + words)


def _times_of(findings: Iterable[Finding]) -> list[tuple[int, int, int]]:
    """Return the times of lines that warn, those that overlap as one: the first op, the last, half of a step."""
    times = list[tuple[int, int, int]]()
    warned = (each.ops for each in findings if each.severity == "warning" and each.count > 1)
    for ops in sorted(warned, key=min):
        first, last = min(ops), max(ops)
        half = (last - first) // (2 * max(len(ops) - 1, 1))  # what is beside the first and the last run
        if times and first <= times[-1][1]:
            before = times.pop()
            first, last, half = before[0], max(last, before[1]), max(half, before[2])
        times.append((first, last, half))
    return times


def _percents(amounts: Sequence[float]) -> list[int]:
    """Return whole percentages that are 100 together: those that lose most are rounded up."""
    exact = [100 * amount / sum(amounts) for amount in amounts]
    by_loss = sorted(range(len(exact)), key=lambda at: int(exact[at]) - exact[at])
    rounded_up = by_loss[: 100 - sum(map(int, exact))]
    return [int(part) + (at in rounded_up) for at, part in enumerate(exact)]


def _stood_still(queries: TraceQueries, finding: Finding) -> float:
    """Return for how many nanoseconds the CPU stood still at a line; 0 where the devices are simulated."""
    ops = queries.trace.ops
    simulated = [device.simulated for device in queries.trace.devices]
    if finding.rule != "host-sync" or not finding.ops or any(simulated):
        return 0.0
    return float(ops.ints("duration")[list(finding.ops)].mean()) * finding.count
