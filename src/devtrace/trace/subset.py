"""A trace with fewer ops, all else consistent, where the whole would be too much; or without its source, for sharing.

Ops that go take with them the calls, tensors, copies and errors that only they had. The ledger, the modules and the
findings stay, and `truncated` says how many ops are gone.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from devtrace.trace.columns import OP_POSITIONS, TABLES, Column
from devtrace.trace.tables import Ints, Lists, Table, TraceData, Values
from devtrace.words.text_format import one_line

Mask = npt.NDArray[np.bool_]

LONGEST_TEXT: Final = 20_000
"""Characters of one string (a source file, a message) in a trace that was cut."""
SPANS: Final = ("calls", "autocasts")
"""Tables whose rows last from one op to another."""
_SITES: Final = ("site", "born", "moved", "chain")
"""Fields of findings, and of their parts, that name sites."""


def cut(trace: TraceData, keep: Mask) -> TraceData:
    """Return the trace of only those ops that `keep` marks, with its longest texts shortened."""
    kept_before = np.concatenate([[0], np.cumsum(keep)])
    kept = {
        "ops": keep,
        "tensors": _used_tensors(trace, keep),
        **{
            name: kept_before[trace.table(name).ints("end")] > kept_before[trace.table(name).ints("begin")]
            for name in SPANS
        },
        "copies": keep[trace.copies.ints("op")],
        "errors": keep[trace.errors.ints("op")],
    }
    ids = {table: _new_ids(rows) for table, rows in kept.items()}
    values = {
        name: {column.name: _column(trace.table(name), column, kept.get(name), ids, kept_before) for column in columns}
        for name, columns in TABLES.items()
    }
    values["tensors"]["site"] = _births(trace)[kept["tensors"]]  # an op that goes leaves its line to its tensors
    return replace(
        trace,
        values=values,
        strings=tuple(
            text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}… ({len(text):,} characters)"
            for text in trace.strings
        ),
        memory=tuple(replace(curve, ops=kept_before[np.maximum(curve.ops, 0)]) for curve in trace.memory),
        truncated=trace.truncated + int(np.count_nonzero(~keep)),
        findings=None if trace.findings is None else tuple(renumbered(each, ids["ops"]) for each in trace.findings),
    )


def around(trace: TraceData, count: int) -> Mask:
    """Mark about `count` ops: those before and after each finding and error, the rest from the beginning."""
    keep = np.zeros(len(trace.ops), dtype=bool)
    marked = [int(finding.get("op", -1)) for finding in trace.findings or ()] + trace.errors.ints("op").tolist()
    reach = count // (4 * max(len(marked), 1))
    for op in marked:
        if op >= 0:
            keep[max(op - reach, 0) : op + reach + 1] = True
    keep[: max(count - int(keep.sum()), 0)] = True
    return keep


def _new_ids(rows: Mask) -> Ints:
    """Return the new id of each row; the last entry is for -1, which stays."""
    ids: Ints = np.append(np.where(rows, np.cumsum(rows) - 1, -1), -1)
    return ids


def _used_tensors(trace: TraceData, keep: Mask) -> Mask:
    """Mark the tensors of the ops that stay, and their sources."""
    used = np.zeros(len(trace.tensors), dtype=bool)
    for name in ("inputs", "outputs"):
        used[trace.ops.lists(name).take(np.flatnonzero(keep)).flat] = True
    source = trace.tensors.ints("source")
    while True:
        sources = source[used]
        new = sources[(sources >= 0) & ~used[sources]]
        if not len(new):
            return used
        used[new] = True


def _births(trace: TraceData) -> Ints:
    """Return each tensor's site: an op that goes leaves its site to its outputs."""
    producer, site = trace.tensors.ints("producer"), trace.tensors.ints("site")
    has_producer_alone = (site < 0) & (producer >= 0)
    births = site.copy()
    births[has_producer_alone] = trace.ops.ints("site")[producer[has_producer_alone]]
    return births


def _column(table: Table[Any], column: Column, rows: Mask | None, ids: Mapping[str, Ints], kept_before: Ints) -> Values:
    new_ids = ids.get(column.table)
    if column.is_list:
        lists = table.lists(column.name)
        lists = lists if rows is None else lists.take(np.flatnonzero(rows))
        return lists if new_ids is None else Lists(lists.offsets, _like(lists.flat, new_ids[lists.flat]))
    values = table.ints(column.name)
    values = values if rows is None else values[rows]
    if (table.name, column.name) in OP_POSITIONS:
        return _like(values, np.where(values < 0, values, kept_before[np.maximum(values, 0)]))
    return values if new_ids is None else _like(values, new_ids[values])


def _like(old: Ints, new: Ints) -> Ints:
    return cast(Ints, new.astype(old.dtype))


def renumbered(finding: Mapping[str, Any], ops: Ints, sites: Ints | None = None) -> dict[str, Any]:
    """Return a finding, or a part of one, by the new ids of ops (and sites), of which the last is for -1."""
    result: dict[str, Any] = {}
    for name, value in finding.items():
        ids = ops if name in ("op", "ops") else sites if name in _SITES else None
        if isinstance(value, Mapping):
            result[name] = renumbered(value, ops, sites)
        elif isinstance(value, list) and ids is not None:
            result[name] = [int(ids[id]) for id in value if 0 <= id < len(ids) and ids[id] >= 0]
        elif isinstance(value, list):
            result[name] = [renumbered(part, ops, sites) if isinstance(part, Mapping) else part for part in value]
        else:
            result[name] = value if ids is None else int(ids[value])
    return result


def without_source(trace: TraceData) -> TraceData:
    """Return the trace without the text of its sites and sources; text that nothing else refers to leaves the file.

    Names of files, variables and modules stay, and what findings quote. Edits are code, and so go.
    """
    strings = trace.strings if "" in trace.strings else (*trace.strings, "")
    sites = {**trace.values["sites"], "text": np.full(len(trace.sites), strings.index(""), np.int32)}
    sources = {name: np.zeros(0, np.int32) for name in trace.values["sources"]}
    bare = replace(trace, strings=strings, values={**trace.values, "sites": sites, "sources": sources})
    texts = [(table, column.name) for table, columns in TABLES.items() for column in columns if column.kind == "text"]
    used = {id for table, name in texts for id in bare.table(table).ints(name).tolist()}
    kept = tuple(text if id in used else "" for id, text in enumerate(strings))
    findings = None if trace.findings is None else tuple(map(_without_code, trace.findings))
    return replace(bare, strings=kept, findings=findings)


def _without_code(finding: Mapping[str, Any]) -> dict[str, Any]:
    """Return a finding without its edits, and without their code in its advice."""
    help = finding["help"]
    for edit in finding["edits"]:
        code = edit["after"].strip()
        help = "..." if help == code else help.replace(f"`{one_line(code)}`", "`...`")
    return {**finding, "edits": [], "help": help}
