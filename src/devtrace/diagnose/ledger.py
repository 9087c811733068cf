"""The ledger: for each line of the user's what it ran, copied, waited for and left to the CPU; exact counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, cast

import numpy as np

from devtrace.diagnose.facts import Facts, Mask
from devtrace.report import LedgerRow, Site
from devtrace.trace import Ints, Trace

COPIES: Final = ("h2d", "d2h", "d2d")


def directions(facts: Facts) -> dict[str, Mask]:
    """Which rows of copies go to a device, to the host, between devices."""
    copies = facts.trace.copies
    source, target = copies.ints("from"), copies.ints("to")
    cpu, crossing = facts.host, source != target
    return {
        "h2d": cast(Mask, crossing & (source == cpu)),
        "d2h": cast(Mask, crossing & (target == cpu)),
        "d2d": cast(Mask, crossing & (source != cpu) & (target != cpu)),
    }


def waits(facts: Facts) -> Mask:
    """Which ops make the host wait for a device: reads of values that are not the host's own."""
    devices = facts.trace.ops.ints("device")
    return cast(Mask, facts.is_kind("sync") & (devices != facts.host) & (devices >= 0))


def on_host(facts: Facts) -> Mask:
    """Which ops compute on the CPU while the program has a device. Arithmetic on single numbers does not count."""
    ops = facts.trace.ops
    if not facts.uses_device:
        return np.zeros(len(ops), dtype=bool)
    mine = facts.is_kind("compute") & (ops.ints("device") == facts.host)
    return cast(Mask, mine & _has_dimensions(facts))


def _has_dimensions(facts: Facts) -> Mask:
    """Which ops have a tensor of one dimension or more."""
    found = np.zeros(len(facts.trace.ops), dtype=bool)
    for column in ("inputs", "outputs"):
        lists = facts.trace.ops.lists(column)
        large = np.concatenate([[0], np.cumsum(facts.dims[lists.flat] > 0)])
        found |= large[lists.offsets[1:]] > large[lists.offsets[:-1]]
    return found


@dataclass(frozen=True)
class Tally:
    """Counts by site row, before they are given words."""

    by_device: Ints
    counts: dict[str, Ints]

    def __getitem__(self, name: str) -> Ints:
        return self.counts[name]

    def sites(self, name: str) -> list[int]:
        """The sites with a count of this kind."""
        return np.flatnonzero(self.counts[name]).tolist()


def tally(facts: Facts) -> Tally:
    """The trace's ops counted by site, on top of what the recorder counted of the ops that it folded away."""
    trace = facts.trace
    sites = len(trace.sites)
    counts: dict[str, Ints] = {
        name: np.zeros(sites, dtype=np.int64) for name in (*COPIES, "syncs", "cpu_compute", "bytes")
    }
    by_device = _by_device(facts)
    ops = facts.op_users
    for name, chosen in (("syncs", waits(facts)), ("cpu_compute", on_host(facts))):
        counts[name] += _count(ops[chosen], sites)
    carriers = trace.copies.ints("op")
    for name, chosen in directions(facts).items():
        at = ops[carriers[chosen]]
        counts[name] += _count(at, sites)
        counts["bytes"] += _count(at, sites, trace.copies.ints("bytes")[chosen])
    _add_folded(facts, by_device, counts)
    return Tally(by_device, counts)


def _count(at: Ints, sites: int, weights: Ints | None = None) -> Ints:
    known = at >= 0
    values = None if weights is None else weights[known]
    return np.bincount(at[known], values, minlength=sites).astype(np.int64)


def _by_device(facts: Facts) -> Ints:
    """Ops by site and device."""
    sites, devices = len(facts.trace.sites), len(facts.trace.devices)
    op_devices, users = facts.trace.ops.ints("device"), facts.op_users
    known = (op_devices >= 0) & (users >= 0)
    flat = np.bincount(users[known].astype(np.int64) * devices + op_devices[known], minlength=sites * devices)
    return flat.reshape(sites, devices)


def _add_folded(facts: Facts, by_device: Ints, counts: dict[str, Ints]) -> None:
    folded = facts.trace.ledger
    if not len(folded):
        return
    at = facts.users[folded.ints("site")]
    for name, column in counts.items():
        np.add.at(column, at, folded.ints(name))
    lists = folded.lists("ops")
    rows = np.repeat(at, np.diff(lists.offsets))
    within = np.arange(len(lists.flat)) - np.repeat(lists.offsets[:-1], np.diff(lists.offsets))
    np.add.at(by_device.reshape(-1), rows * by_device.shape[1] + within, lists.flat)


def rows(facts: Facts, tally: Tally) -> tuple[LedgerRow, ...]:
    """A row for each line that did anything."""
    by_device, counts = tally.by_device, tally.counts
    busy = by_device.any(axis=1)
    for column in counts.values():
        busy |= column > 0
    names = facts.device_names
    return tuple(
        LedgerRow(
            cast(Site, facts.site(site)),
            {names[device]: int(number) for device, number in enumerate(by_device[site]) if number},
            **{name: int(column[site]) for name, column in counts.items()},
        )
        for site in np.flatnonzero(busy).tolist()
    )


def stored(trace: Trace) -> tuple[LedgerRow, ...]:
    """The ledger of a trace that was diagnosed before."""
    return tuple(
        LedgerRow(
            Site.of(row.site),
            {str(trace.devices[device]): number for device, number in enumerate(row.ops) if number},
            row.h2d,
            row.d2h,
            row.d2d,
            row.syncs,
            row.cpu_compute,
            row.bytes,
        )
        for row in trace.ledger
    )
