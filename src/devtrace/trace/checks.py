"""The rules that every trace keeps, so that readers follow ids without checking them."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from devtrace.trace.columns import SEVERITIES, TABLES, Column
from devtrace.trace.tables import Lists, Table, TraceData
from devtrace.words.catalogue import sentence

_LINKS: Final = {"site": "sites", "op": "ops"}
_CULPRIT_LINKS: Final = {"born": "sites", "moved": "sites"}
_TEXTS: Final = ("rule", "severity", "cause", "message", "help")


def broken_rule(trace: TraceData) -> str | None:
    """Return the first rule that the trace breaks, as a sentence, or None."""
    return next(_broken(trace), None)


def _broken(trace: TraceData) -> Iterator[str]:
    for name, columns in TABLES.items():
        table = trace.table(name)
        for column in columns:
            yield from _broken_shape(table, column)
        for column in columns:
            yield from _broken_reference(trace, table, column)
    yield from _broken_order(trace)
    yield from _broken_calls(trace)
    for at, finding in enumerate(trace.findings or ()):
        yield from _broken_finding(trace, at, finding)


def _broken_shape(table: Table[Any], column: Column) -> Iterator[str]:
    values = table.column(column.name)
    where = f"{table.name}.{column.name}"
    if isinstance(values, Lists):
        offsets, end = values.offsets, len(values.flat)
        if not len(offsets) or offsets[0] != 0 or offsets[-1] != end or bool(np.any(values.lengths < 0)):
            yield sentence("damage.run", where=where, count=end)
    if len(values) != len(table):
        first = f"{table.name}.{table.columns[0].name}"
        yield sentence("damage.rows", where=where, count=len(values), first=first, expected=len(table))


def _broken_reference(trace: TraceData, table: Table[Any], column: Column) -> Iterator[str]:
    values = table.column(column.name)
    flat = values.flat if isinstance(values, Lists) else values
    if column.kind in ("int", "ints") or not len(flat):
        return
    count = len(trace.strings) if column.kind == "text" else len(trace.table(column.table))
    low = -1 if column.kind == "row" else 0
    if int(flat.min()) < low or int(flat.max()) >= count:
        where = f"{table.name}.{column.name}"
        yield sentence("damage.reference", where=where, count=count, table=column.table or "strings")


def _broken_order(trace: TraceData) -> Iterator[str]:
    start, duration = trace.ops.ints("start"), trace.ops.ints("duration")
    if len(start) and (int(start[0]) < 0 or bool(np.any(np.diff(start) < 0))):
        yield sentence("damage.start")
    if bool(np.any(duration < -1)):
        yield sentence("damage.duration")
    for table in (trace.tensors, trace.copies):
        if bool(np.any(table.ints("bytes") < 0)):
            yield sentence("damage.bytes", table=table.name)


def _broken_calls(trace: TraceData) -> Iterator[str]:
    calls = trace.calls
    begin, end, parent = calls.ints("begin"), calls.ints("end"), calls.ints("parent")
    if any(_is_outside(table, len(trace.ops)) for table in (calls, trace.autocasts)):
        yield sentence("damage.call-range")
    ids = np.arange(len(calls))
    if bool(np.any(parent >= ids)):
        yield sentence("damage.call-order")
    inside = parent >= 0
    if bool(np.any(begin[inside] < begin[parent[inside]]) or np.any(end[inside] > end[parent[inside]])):
        yield sentence("damage.call-nesting")


def _is_outside(spans: Table[Any], ops: int) -> bool:
    begin, end = spans.ints("begin"), spans.ints("end")
    return bool(np.any(begin < 0) or np.any(end < begin) or np.any(end > ops))


def _broken_finding(trace: TraceData, at: int, finding: Mapping[str, Any]) -> Iterator[str]:
    for key in _TEXTS:
        if not isinstance(finding.get(key), str):
            yield sentence("damage.finding-text", at=at, key=key)
    if finding.get("severity") not in SEVERITIES:
        yield sentence("damage.finding-severity", at=at)
    yield from _broken_links(trace, at, finding, _LINKS)
    culprit = finding.get("culprit")
    if isinstance(culprit, dict):
        yield from _broken_links(trace, at, culprit, _CULPRIT_LINKS)
        chain = culprit.get("chain", [])
        if not isinstance(chain, list) or not all(_is_id(trace, "sites", id) for id in chain):
            yield sentence("damage.finding-chain", at=at)
    elif culprit is not None:
        yield sentence("damage.finding-culprit", at=at)


def _broken_links(trace: TraceData, at: int, data: Mapping[str, Any], links: Mapping[str, str]) -> Iterator[str]:
    for key, table in links.items():
        if not _is_id(trace, table, data.get(key, -1)):
            yield sentence("damage.finding-link", at=at, key=key)


def _is_id(trace: TraceData, table: str, id: object) -> bool:
    return isinstance(id, int) and not isinstance(id, bool) and -1 <= id < len(trace.table(table))
