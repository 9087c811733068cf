"""Who is the odd one out: by provenance and majority, never by torch's wording.

torch compares arguments in the order of its schema and names the first that differs, which is often the right one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import HOST, TraceQueries

INDEXING: Final = (
    "aten.index.",
    "aten.index_put",
    "aten._index_put",
    "aten._unsafe_index",
    "aten._unsafe_masked_index",
)
RECENT: Final = 200
"""How many of a thread's last ops tell where it works."""


@dataclass(frozen=True)
class Mismatch:
    """The odd tensor of a failing op, its device, and the device of the other inputs."""

    op: int
    odd_tensor: int
    odd_device: str
    expected_device: str
    others_on_odd_device: tuple[int, ...] = ()
    inputs_on_expected_device: tuple[int, ...] = ()


def find_mismatch(queries: TraceQueries, op: int) -> Mismatch | None:
    """The odd one among an op's inputs; None when its mix of devices is legal, or there is no mix."""
    rows = _illegal(queries, op)
    places = list(dict.fromkeys(queries.device(row) for row in rows))
    if len(places) < 2:
        return None
    odd = HOST if HOST in places else _odd_device(queries, op, rows, places)
    wrong = [row for row in rows if queries.device(row) == odd]
    right = [row for row in rows if queries.device(row) != odd]
    worst = min(wrong, key=lambda row: (_is_bias(queries, row), wrong.index(row)))
    along = tuple(row for row in wrong if row != worst)
    return Mismatch(op, worst, odd, queries.device(right[0]), along, tuple(right))


def _illegal(queries: TraceQueries, op: int) -> list[int]:
    """The inputs without those that may be where they are: numbers in a CPU tensor, indexes on the CPU."""
    rows = list(dict.fromkeys(queries.inputs(op)))
    name = queries.op_name(op)
    if name.startswith(INDEXING) and rows and queries.device(rows[0]) != HOST:
        last = [rows[-1]] if "put" in name and len(rows) > 1 else []
        indexes = set(rows[1:]) - set(last)
        rows = [row for row in rows if row not in indexes or queries.device(row) != HOST]
    numbers = [row for row in rows if queries.device(row) == HOST and queries.dims[row] == 0]
    others = [row for row in rows if row not in numbers]
    return others if len({queries.device(row) for row in others}) > 1 else rows


def _is_bias(queries: TraceQueries, row: int) -> bool:
    return str(queries.trace.tensors.raw("name", row)).endswith(".bias")


def _odd_device(queries: TraceQueries, op: int, rows: list[int], places: list[str]) -> str:
    """Of two accelerators the one that the computation is not on."""
    return (
        _off_thread(queries, op, places)
        or _left_behind(queries, rows, places)
        or _off_module(queries, op, rows, places)
        or _off_majority(queries, op, places)
    )


def _off_thread(queries: TraceQueries, op: int, places: list[str]) -> str:
    """In a replica's thread: what is not on the device where that thread has worked."""
    ops = queries.trace.ops
    thread = ops.number("thread", op)
    if thread <= 0:
        return ""
    return _not_busiest(queries, np.flatnonzero(ops.ints("thread")[:op] == thread)[-RECENT:].tolist(), places)


def _left_behind(queries: TraceQueries, rows: list[int], places: list[str]) -> str:
    """One input has come over from the other's device: the flow has moved on, and the other has stayed."""
    came = {place: {queries.device(past) for past in _past(queries, rows, place)} - {place} for place in places}
    stayed = [
        place
        for place in places
        if any(place in came[other] for other in places if other != place)
        and not any(other in came[place] for other in places if other != place)
    ]
    return stayed[0] if len(stayed) == 1 else ""


def _past(queries: TraceQueries, rows: list[int], place: str) -> list[int]:
    return [past for row in rows if queries.device(row) == place for past in queries.ancestors(row)]


def _off_module(queries: TraceQueries, op: int, rows: list[int], places: list[str]) -> str:
    """The device without the parameters of the modules that were at work."""
    call = queries.trace.ops[op].call
    while call is not None:
        begin, end = call.begin, min(call.end if call.end >= 0 else op, op)
        seen = Counter(
            queries.device(row)
            for done in range(max(begin, end - RECENT), end)
            for row in queries.inputs(done)
            if queries.trace.tensors.raw("role", row) in ("parameter", "buffer")
        )
        if seen:
            return _least(seen, places)
        call = call.parent
    return ""


def _off_majority(queries: TraceQueries, op: int, places: list[str]) -> str:
    return _not_busiest(queries, list(range(max(0, op - RECENT), op)), places) or places[-1]


def _not_busiest(queries: TraceQueries, ops: list[int], places: list[str]) -> str:
    devices = queries.trace.ops.ints("device")
    seen = Counter(
        queries.device_names[devices[op]] for op in ops if devices[op] >= 0 and queries.kind(op) == "compute"
    )
    return _least(seen, places)


def _least(seen: Counter[str], places: list[str]) -> str:
    """The place least seen, if they differ."""
    ranked = sorted(places, key=lambda place: seen[place])
    return ranked[0] if seen[ranked[0]] < seen[ranked[-1]] else ""
