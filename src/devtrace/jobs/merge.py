"""The ranks of one job: a trace each, saved under its own name, and read together as one with lanes for every rank.

Ops are ordered by wall clock, so ranks line up as well as the clocks of their machines agree. Devices of one name, and
lines of one file, are taken for the same.

Columns that are read get pages of their own, which go back to the system once nobody has them: what many small arrays
leave behind lies between others and fits no large one. A merge of many ranks would take the room of all traces twice.
"""

import mmap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numpy as np

from devtrace.jobs.shared_findings import on_ranks, shared_findings
from devtrace.trace import format
from devtrace.trace.builder import TraceBuilder
from devtrace.trace.columns import LEDGER_COUNTS, OP_POSITIONS, SEVERITIES, TABLES, Column
from devtrace.trace.curve import Curve
from devtrace.trace.subset import renumbered
from devtrace.trace.tables import Ints, Lists, TraceData, Values
from devtrace.words.catalogue import sentence
from devtrace.words.errors import UsageError
from devtrace.words.text_format import in_short

LEAST: Final = 1 << 16
"""Bytes of a column that is worth pages of its own."""

IntsT = TypeVar("IntsT", bound=Ints)


def in_own_pages(trace: TraceData) -> TraceData:
    def copy(column: Values) -> Values:
        return Lists(*map(_to_pages, (column.offsets, column.flat))) if isinstance(column, Lists) else _to_pages(column)

    values = {table: {name: copy(each) for name, each in columns.items()} for table, columns in trace.values.items()}
    trace.forget_tables()
    return replace(trace, values=values)


def _to_pages(values: IntsT) -> IntsT:
    if values.nbytes < LEAST:
        return values
    copy = cast(IntsT, np.frombuffer(mmap.mmap(-1, values.nbytes), values.dtype))
    copy[:] = values
    copy.flags.writeable = False
    return copy


FEW: Final = 4
"""Ranks that a title names one by one."""
_USUAL: Final[Mapping[str, Any]] = {"op": -1, "ops": [], "site": -1, "culprit": None}
"""What a finding of an older devtrace may lack."""
_SHARED: Final = ("devices", "shapes", "sites", "sources")
"""Tables whose equal rows become one row."""


def with_rank(trace: TraceData, rank: int) -> TraceData:
    threads = dict(trace.values["threads"])
    threads["rank"] = np.full(len(trace.threads), rank, dtype=np.int32)
    return replace(trace, values={**trace.values, "threads": threads})


def load(files: Iterable[str | Path]) -> TraceData:
    """Read the ranks of one job as one trace with lanes for each."""
    return merge(in_own_pages(format.load(file)) for file in files)


def merge(traces: Iterable[TraceData]) -> TraceData:
    """Make one trace of the ranks of one job. A trace that knows no rank gets its index in the list.

    Each column is let go of when it is merged, so of traces that nobody else keeps there is never a second copy.
    """
    ranked = []
    for index, trace in enumerate(traces):
        ranked.append(with_rank(trace, _rank_of(trace, index)))
        trace.forget_tables()
    ranks = [_rank_of(trace) for trace in ranked]
    if len(set(ranks)) < len(ranks):
        twice = next(rank for rank in ranks if ranks.count(rank) > 1)
        raise UsageError.of("rank-twice", count=len(ranks), rank=twice)
    ranked.sort(key=_rank_of)
    merging = _Merge(ranked)
    for trace in ranked:
        trace.forget_tables()
    ranked.clear()
    return merging.trace()


def _rank_of(trace: TraceData, otherwise: int = -1) -> int:
    ranks = trace.threads.ints("rank")
    return int(ranks[0]) if len(ranks) and ranks[0] >= 0 else otherwise


class _Rank:
    """One rank while its trace is merged. `ids[table]` is the new id of each row; its last entry is for -1."""

    def __init__(self, trace: TraceData, late: int, builder: TraceBuilder) -> None:
        self.values = {table: dict(columns) for table, columns in trace.values.items()}
        self.values["ops"]["start"] = trace.ops.ints("start").astype(np.int64) + late
        self.trace = replace(trace, values=self.values)
        self.findings = trace.findings
        self.number = _rank_of(trace)
        self.texts = np.array([builder.text(text) for text in trace.strings], np.int32)
        self.ids: dict[str, Ints] = {}

    def lists(self, table: str, column: Column) -> Lists:
        lists = self.trace.table(table).lists(column.name)
        return Lists(lists.offsets, self.ids[column.table][lists.flat]) if column.table else lists

    def ints(self, table: str, column: Column, ops: int) -> Ints:
        """Return a column in terms of the merged trace, which has so many ops."""
        values = self.trace.table(table).ints(column.name)
        if (table, column.name) in OP_POSITIONS:
            return self._position(values, ops, last=column.name == "end")
        if column.kind == "text":
            return self.texts[values]
        return self.ids[column.table][values] if column.kind == "row" else values

    def _position(self, counts: Ints, ops: int, *, last: bool) -> Ints:
        """Turn counts of this rank's ops into counts of all ops: up to its last op, or to before its next."""
        ids = self.ids["ops"][:-1]
        positions = (np.append(0, ids + 1) if last else np.append(ids, ops))[np.maximum(counts, 0)]
        return np.where(counts < 0, -1, positions).astype(np.int64)

    def memory(self) -> Iterator[Curve]:
        """Yield the curves of this rank's devices, by the ops of all."""
        for curve in self.trace.memory:
            ops = self.ids["ops"][np.minimum(curve.ops, len(self.ids["ops"]) - 2)]
            yield replace(curve, ops=ops.astype(np.int64))

    def finding(self, finding: Mapping[str, Any]) -> dict[str, Any]:
        return renumbered({**_USUAL, **finding}, self.ids["ops"], self.ids["sites"]) | {"rank": self.number}


class _Merge:
    def __init__(self, traces: Sequence[TraceData]) -> None:
        producer = traces[0].producer
        self.builder = TraceBuilder(_title(traces), min(trace.recorded for trace in traces), producer)
        lateness = zip(traces, _lateness(traces), strict=True)
        self.ranks = [_Rank(trace, late, self.builder) for trace, late in lateness]
        self.order = np.argsort(np.concatenate([rank.trace.ops.ints("start") for rank in self.ranks]), kind="stable")

    def trace(self) -> TraceData:
        for rank in self.ranks:
            for table in _SHARED:
                self._share_rows(rank, table)
        self._number_rows()
        if all(rank.findings is not None for rank in self.ranks):
            found = {rank.number: [rank.finding(finding) for finding in rank.findings or ()] for rank in self.ranks}
            self.builder.findings = tuple(sorted(shared_findings(found), key=_worst_and_first))
        self._add_ledger()
        for table in sorted(TABLES, key=lambda table: table != "ops"):  # which needs most room, while there is most
            if table not in (*_SHARED, "ledger"):
                columns = sorted(TABLES[table], key=lambda column: not column.is_list)
                self.builder.columns(table, {column.name: self._column(table, column) for column in columns})
        self.builder.truncated = sum(rank.trace.truncated for rank in self.ranks)
        self.builder.notes = list(self._notes())
        self.builder.language = self.ranks[0].trace.language
        merged = self.builder.build()
        traces = [rank.trace for rank in self.ranks]
        unended = next((trace for trace in traces if trace.outcome != "ended"), traces[0])
        is_clear = all(trace.all_clear for trace in traces)
        closing = next((trace.closing for trace in traces if trace.closing), "")
        notes = (*filter(None, [_first_to_fail(merged)]), *merged.notes)
        memory = tuple(chain.from_iterable(rank.memory() for rank in self.ranks))
        return replace(merged, notes=notes, outcome=unended.outcome, closing=closing, all_clear=is_clear, memory=memory)

    def _notes(self) -> Iterator[str]:
        """Yield the notes of all ranks, each once."""
        ranks_of_note: dict[str, list[int]] = {}
        for rank in self.ranks:
            for note in dict.fromkeys(rank.trace.notes):
                ranks_of_note.setdefault(note, []).append(rank.number)
        for note, ranks in ranks_of_note.items():
            if len(ranks) == 1:
                yield sentence("note.of-rank", rank=ranks[0], note=note)
            else:
                yield on_ranks(ranks, [rank.number for rank in self.ranks], note)

    def _share_rows(self, rank: _Rank, table: str) -> None:
        rows = rank.trace.table(table)
        ids: list[int] = []
        for row in range(len(rows)):
            fields = {column.name: rows.raw(column.name, row) for column in TABLES[table]}
            if table == "sites" and fields["caller"] >= 0:
                fields["caller"] = ids[fields["caller"]] if fields["caller"] < row else -1
            ids.append(self.builder.intern(table, tuple(fields.values()), **fields))
        rank.ids[table] = np.array([*ids, -1], np.int32)

    def _number_rows(self) -> None:
        """Rows of tables that are not shared follow those of the ranks before, ops in the order of their start."""
        op_ids = np.argsort(self.order)
        for table in TABLES:
            if table in _SHARED:
                continue
            before = 0
            for rank in self.ranks:
                count = len(rank.trace.table(table))
                ids = np.arange(before, before + count)
                rank.ids[table] = np.append(op_ids[ids] if table == "ops" else ids, -1).astype(np.int32)
                before += count

    def _column(self, table: str, column: Column) -> Values:
        if column.is_list:
            lists = [rank.lists(table, column) for rank in self.ranks]
            flat = np.concatenate([values.flat for values in lists]).astype(np.int32, copy=False)
            joined = Lists.of(np.concatenate([values.lengths for values in lists]), flat)
            self._let_go(table, column)
            return joined.take(self.order) if table == "ops" else joined
        values = np.concatenate([rank.ints(table, column, len(self.order)) for rank in self.ranks])
        self._let_go(table, column)
        values = values[self.order] if table == "ops" else values
        return cast(Ints, values.astype(np.int64 if column.wide else np.int32, copy=False))

    def _let_go(self, table: str, column: Column) -> None:
        for rank in self.ranks:
            del rank.values[table][column.name]

    def _add_ledger(self) -> None:
        """Give lines that several ranks ran one row."""
        sums: dict[int, dict[str, Any]] = {}
        width = self.builder.count("devices")
        for rank in self.ranks:
            for row in rank.trace.ledger:
                site = int(rank.ids["sites"][row.site.id])
                total = sums.setdefault(site, {"ops": [0] * width} | dict.fromkeys(LEDGER_COUNTS, 0))
                for device, count in enumerate(row.ops):
                    total["ops"][int(rank.ids["devices"][device])] += count
                for name in LEDGER_COUNTS:
                    total[name] += getattr(row, name)
        for site, fields in sums.items():
            self.builder.append("ledger", site=site, **fields)


def _worst_and_first(finding: Mapping[str, Any]) -> tuple[int, int]:
    """Order findings by severity, errors by time: the first one led to the others."""
    severity = SEVERITIES.index(finding["severity"])
    return severity, finding["op"] if severity == 0 else 0


def _first_to_fail(trace: TraceData) -> str:
    """Return the sentence on which rank failed first, where several did."""
    starts: dict[int, int] = {}
    for error in trace.errors:
        starts.setdefault(error.op.thread.rank, error.op.start)
    if len(starts) < 2:
        return ""
    first, second = sorted(starts, key=lambda rank: starts[rank])[:2]
    return sentence("ranks.first", rank=first, other=second, later=starts[second] - starts[first], count=len(starts))


def _title(traces: Sequence[TraceData]) -> str:
    names = list(dict.fromkeys(trace.title for trace in traces if trace.title))
    ranks = [_rank_of(trace) for trace in traces]
    numbers = in_short(ranks) if len(ranks) > FEW else ", ".join(map(str, ranks))
    return f"{', '.join(names)} (ranks {numbers})".strip()


def _lateness(traces: Sequence[TraceData]) -> list[int]:
    """Return how long after the first each recording began, in ns; 0 where a trace gives no moment."""
    moments = [_moment(trace.recorded) for trace in traces]
    first = min(filter(None, moments), default=None)
    delays = [moment - first if moment and first else timedelta() for moment in moments]
    # The clocks of recordings that begin a day apart cannot agree.
    return [delay // timedelta(microseconds=1) * 1000 if delay < timedelta(days=1) else 0 for delay in delays]


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
