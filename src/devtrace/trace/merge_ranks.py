"""The ranks of one job: a trace each, saved under its own name, and read together as one with lanes for every rank.

The ranks' ops are interleaved by the wall clock at which each recording began, so what ran at the same time stands at
the same place as far as the clocks of the machines agree. Devices of one name, and lines of one file, are taken for the
same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, cast

import numpy as np

from devtrace.trace import format
from devtrace.trace.builder import TraceBuilder
from devtrace.trace.columns import TABLES, Column
from devtrace.trace.tables import Ints, Lists, TraceData, Values
from devtrace.words.errors import UsageError

_SHARED: Final = ("devices", "shapes", "sites", "sources")
"""Tables whose equal rows become one row."""
_COUNTS_OPS: Final = {("calls", "begin"), ("calls", "end"), ("moves", "op"), ("modules", "op")}


def with_rank(trace: TraceData, rank: int | None) -> TraceData:
    """The trace, its threads marked as those of a rank."""
    if rank is None:
        return trace
    threads = dict(trace.values["threads"])
    threads["rank"] = np.full(len(trace.threads), rank, dtype=np.int32)
    return replace(trace, values={**trace.values, "threads": threads})


def load(*files: str | Path) -> TraceData:
    """Read a saved trace; of several files, the ranks of one job, one trace with lanes for each."""
    if not files:
        raise UsageError(
            "load-nothing", "load() without a file", "it takes one file, or one for each rank", "name them"
        )
    traces = [format.load(file) for file in files]
    return traces[0] if len(traces) == 1 else merge(traces)


def merge(traces: Sequence[TraceData]) -> TraceData:
    """The ranks of one job as one trace. A trace that knows no rank gets its place in the list."""
    ranked = [with_rank(trace, _rank(trace, place)) for place, trace in enumerate(traces)]
    ranks = [_rank(trace, -1) for trace in ranked]
    if len(set(ranks)) < len(ranks):
        twice = next(rank for rank in ranks if ranks.count(rank) > 1)
        raise UsageError(
            "rank-twice",
            f"{len(ranks)} traces, two of them of rank {twice}",
            "each is to be of another rank of the same job",
            "leave one out, or compare two runs with devtrace.diff",
        )
    order = sorted(range(len(ranked)), key=lambda place: ranks[place])
    return _Merge([ranked[place] for place in order], [ranks[place] for place in order]).trace()


def _rank(trace: TraceData, otherwise: int) -> int:
    known = trace.threads.ints("rank")
    return int(known[0]) if len(known) and known[0] >= 0 else otherwise


class _Merge:
    """One merging. `ids[rank][table]` says where each row goes; its last entry is for -1."""

    def __init__(self, traces: Sequence[TraceData], ranks: Sequence[int]) -> None:
        self.traces = traces
        self.ranks = ranks
        first = traces[0]
        self.builder = TraceBuilder(_title(traces, ranks), min(trace.recorded for trace in traces), first.producer)
        self.texts = [np.array([self.builder.text(text) for text in trace.strings], np.int64) for trace in traces]
        self.starts = [
            trace.ops.ints("start").astype(np.int64) + late
            for trace, late in zip(traces, _lateness(traces), strict=True)
        ]
        self.ids: list[dict[str, Ints]] = [{} for _ in traces]

    def trace(self) -> TraceData:
        for place in range(len(self.traces)):
            for table in _SHARED:
                self._share(place, table)
        order = np.argsort(np.concatenate(self.starts), kind="stable")
        self._place_rows(order)
        for table in TABLES:
            if table not in (*_SHARED, "ledger"):
                self.builder.columns(table, self._joined(table, order if table == "ops" else None))
        self._add_ledger()
        self.builder.truncated = sum(trace.truncated for trace in self.traces)
        self.builder.notes = [
            f"rank {rank}: {note}" for trace, rank in zip(self.traces, self.ranks, strict=True) for note in trace.notes
        ]
        if all(trace.findings is not None for trace in self.traces):
            self.builder.findings = self._findings()
        return self.builder.build()

    def _share(self, place: int, table: str) -> None:
        rows = self.traces[place].table(table)
        ids: list[int] = []
        for row in range(len(rows)):
            fields = {column.name: rows.raw(column.name, row) for column in TABLES[table]}
            if table == "sites" and fields["caller"] >= 0:
                fields["caller"] = ids[fields["caller"]] if fields["caller"] < row else -1
            ids.append(self.builder.intern(table, tuple(fields.values()), **fields))
        self.ids[place][table] = np.array([*ids, -1], np.int64)

    def _place_rows(self, order: Ints) -> None:
        position = np.empty(len(order), np.int64)
        position[order] = np.arange(len(order))
        offsets = dict.fromkeys(TABLES, 0)
        for place, trace in enumerate(self.traces):
            for table in TABLES:
                count = len(trace.table(table))
                if table not in _SHARED:
                    moved = np.arange(offsets[table], offsets[table] + count)
                    moved = position[moved] if table == "ops" else moved
                    self.ids[place][table] = np.append(moved, -1)
                offsets[table] += count

    def _joined(self, table: str, order: Ints | None) -> dict[str, Values]:
        return {column.name: self._column(table, column, order) for column in TABLES[table]}

    def _column(self, table: str, column: Column, order: Ints | None) -> Values:
        if column.is_list:
            return _joined_lists([self._lists(place, table, column) for place in range(len(self.traces))], order)
        joined = np.concatenate([self._ints(place, table, column) for place in range(len(self.traces))])
        joined = joined if order is None else joined[order]
        return cast(Ints, joined.astype(np.int64 if column.wide else np.int32))

    def _lists(self, place: int, table: str, column: Column) -> Lists:
        lists = self.traces[place].table(table).lists(column.name)
        return Lists(lists.offsets, self.ids[place][column.table][lists.flat] if column.table else lists.flat)

    def _ints(self, place: int, table: str, column: Column) -> Ints:
        values = self.traces[place].table(table).ints(column.name)
        if (table, column.name) == ("ops", "start"):
            return self.starts[place]
        if (table, column.name) in _COUNTS_OPS:
            return self._count(place, values, last=column.name == "end")
        if column.kind == "text":
            return self.texts[place][values]
        return self.ids[place][column.table][values] if column.kind == "row" else values

    def _count(self, place: int, counts: Ints, *, last: bool) -> Ints:
        """A number of ops of one rank as one of all: up to its last op, or from its next."""
        ids, total = self.ids[place]["ops"], sum(map(len, self.starts))
        counted = np.maximum(counts, 0)
        moved = np.append(0, ids[:-1] + 1)[counted] if last else np.append(ids[:-1], total)[counted]
        return np.where(counts < 0, -1, moved).astype(np.int64)

    def _add_ledger(self) -> None:
        """Lines that several ranks ran have one row."""
        sums: dict[int, dict[str, Any]] = {}
        width = self.builder.count("devices")
        for place, trace in enumerate(self.traces):
            for row in trace.ledger:
                site = int(self.ids[place]["sites"][row.site.id])
                held = sums.setdefault(site, {"ops": [0] * width} | dict.fromkeys(_LEDGER_COUNTS, 0))
                for device, count in enumerate(row.ops):
                    held["ops"][int(self.ids[place]["devices"][device])] += count
                for name in _LEDGER_COUNTS:
                    held[name] += getattr(row, name)
        for site, fields in sums.items():
            self.builder.append("ledger", site=site, **fields)

    def _findings(self) -> tuple[dict[str, Any], ...]:
        found = [
            self._finding(place, finding) for place, trace in enumerate(self.traces) for finding in trace.findings or ()
        ]
        severity = ("error", "warning", "note")
        return tuple(sorted(found, key=lambda finding: severity.index(finding["severity"])))

    def _finding(self, place: int, finding: Mapping[str, Any]) -> dict[str, Any]:
        ops, sites, rank = self.ids[place]["ops"], self.ids[place]["sites"], self.ranks[place]
        culprit = finding.get("culprit")
        if culprit:
            places = {name: int(sites[culprit.get(name, -1)]) for name in ("born", "moved")}
            culprit = {**culprit, **places, "chain": [int(sites[site]) for site in culprit.get("chain", ())]}
        return {
            **finding,
            "rank": rank,
            "op": int(ops[finding.get("op", -1)]),
            "ops": [int(ops[op]) for op in finding.get("ops", ())],
            "site": int(sites[finding.get("site", -1)]),
            "culprit": culprit,
            "message": f"On rank {rank}: {finding.get('message', '')}",
        }


_LEDGER_COUNTS: Final = ("h2d", "d2h", "d2d", "syncs", "cpu_compute", "bytes")


def _title(traces: Sequence[TraceData], ranks: Sequence[int]) -> str:
    names = list(dict.fromkeys(trace.title for trace in traces if trace.title))
    numbers = ", ".join(map(str, ranks))
    return f"{', '.join(names)} (ranks {numbers})".strip()


def _lateness(traces: Sequence[TraceData]) -> list[int]:
    """How long after the first each recording began, in ns; 0 where a trace does not say."""
    begun = [_moment(trace.recorded) for trace in traces]
    first = min((moment for moment in begun if moment is not None), default=None)
    return [0 if moment is None or first is None else _after(first, moment) for moment in begun]


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _after(first: datetime, moment: datetime) -> int:
    """A clock that is a day off tells nothing of what ran together."""
    late = (moment - first) // timedelta(microseconds=1)
    return 1000 * late if late < 86_400_000_000 else 0


def _joined_lists(lists: Sequence[Lists], order: Ints | None) -> Lists:
    lengths = np.concatenate([np.diff(each.offsets) for each in lists]).astype(np.int64)
    flat = np.concatenate([each.flat for each in lists])
    if order is not None:
        begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])[:-1][order]
        lengths = lengths[order]
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        flat = flat[np.repeat(begins, lengths) + within]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    return Lists(offsets, flat.astype(np.int32))
