"""The ledger: exact counts, by line of the user's, of ops, copies, syncs and work left on the CPU."""

from dataclasses import dataclass
from typing import cast

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import Mask, TraceQueries
from devtrace.diagnosis.findings import LedgerRow, Site
from devtrace.trace import ledger_counts as counting
from devtrace.trace.columns import LEDGER_COUNTS
from devtrace.trace.ids import SiteId
from devtrace.trace.tables import Ints, TraceData


def directions(queries: TraceQueries) -> dict[str, Mask]:
    """Return the rows of copies by direction: to a device, to the host, between devices."""
    return counting.directions(_copies(queries), queries.host)


def waits(queries: TraceQueries) -> Mask:
    """Return the ops that make the host wait for a device."""
    return counting.waits(queries.is_kind("sync"), queries.trace.ops.ints("device"), queries.host)


def on_host(queries: TraceQueries) -> Mask:
    """Return the ops that compute on the CPU while the program has a device."""
    return counting.on_host(_ops(queries), queries.host)


def _ops(queries: TraceQueries) -> counting.Ops:
    device = queries.trace.ops.ints("device")
    inputs, outputs = (queries.trace.ops.lists(column) for column in ("inputs", "outputs"))
    return counting.Ops(
        site=queries.op_users,
        device=device,
        times=np.ones(len(device), dtype=np.int64),
        sync=queries.is_kind("sync"),
        compute=queries.is_kind("compute"),
        has_dimensions=inputs.have(queries.dims[inputs.flat] > 0) | outputs.have(queries.dims[outputs.flat] > 0),
        paid_at=queries.cost_users,
    )


def _copies(queries: TraceQueries) -> counting.Copies:
    copies = queries.trace.copies
    return counting.Copies(
        op=copies.ints("op"),
        source=copies.ints("from"),
        target=copies.ints("to"),
        times=np.ones(len(copies), dtype=np.int64),
        bytes=copies.ints("bytes"),
    )


@dataclass(frozen=True)
class Tally:
    """Counts by site: each column has a place for each site of the trace."""

    by_device: Ints
    counts: dict[str, Ints]

    def __getitem__(self, name: str) -> Ints:
        return self.counts[name]

    def sites(self, name: str) -> list[SiteId]:
        return [*map(SiteId, np.flatnonzero(self.counts[name]).tolist())]


def tally(queries: TraceQueries) -> Tally:
    """Count the trace's ops by site, and add the recorder's counts of ops that it folded away."""
    by_device, counts = counting.count(
        _ops(queries),
        _copies(queries),
        sites=len(queries.trace.sites),
        devices=len(queries.trace.devices),
        host=queries.host,
    )
    _add_folded(queries, by_device, counts)
    return Tally(by_device, counts)


def _add_folded(queries: TraceQueries, by_device: Ints, counts: dict[str, Ints]) -> None:
    folded = queries.trace.ledger
    if not len(folded):
        return
    sites = queries.users[folded.ints("site")]
    for name, column in counts.items():
        np.add.at(column, sites, folded.ints(name))
    lists = folded.lists("ops")  # for each line of the ledger its ops by device
    device = np.arange(len(lists.flat)) - lists.offsets[lists.rows]
    np.add.at(by_device, (sites[lists.rows], device), lists.flat)


def rows(queries: TraceQueries, tally: Tally) -> tuple[LedgerRow, ...]:
    """Return a row for each line that did anything."""
    by_device, counts = tally.by_device, tally.counts
    busy = by_device.any(axis=1) | np.any(list(counts.values()), axis=0)
    names = queries.device_names
    return tuple(
        LedgerRow(
            cast(Site, queries.site(SiteId(site))),
            {names[device]: int(ops) for device, ops in enumerate(by_device[site]) if ops},
            **{name: int(column[site]) for name, column in counts.items()},
        )
        for site in np.flatnonzero(busy).tolist()
    )


def stored(trace: TraceData) -> tuple[LedgerRow, ...]:
    """Return the ledger of a trace that was diagnosed before."""
    return tuple(
        LedgerRow(
            Site.of(row.site),
            {str(trace.devices[device]): ops for device, ops in enumerate(row.ops) if ops},
            **{name: getattr(row, name) for name in LEDGER_COUNTS},
        )
        for row in trace.ledger
    )
