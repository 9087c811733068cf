"""Folds a recording that has grown too long: ops that repeat others are counted where those are, and forgotten.

What lives on is seen for the first time again: a new epoch of stamps, and rows only for what kept ops speak of.
"""

from __future__ import annotations

from array import array
from typing import Any

import numpy as np
import numpy.typing as npt

from devtrace.recording.columns import graph
from devtrace.recording.columns.chunk import BACKWARD, MASK, NODE_SHIFT, NODES, OPTIMIZER, WIDTH, Chunk
from devtrace.recording.columns.operator_info import by_id
from devtrace.recording.columns.recorded_ops import Copied, RecordedOps
from devtrace.recording.columns.tensor_rows import size_of
from devtrace.recording.columns.thread_state import CALL, NUMBERS, THREAD_SHIFT, ThreadState
from devtrace.recording.folding import repetition

Array = npt.NDArray[Any]


def fold(recorded: RecordedOps, state: ThreadState, most: int, limit: int) -> None:
    """Leave `most` of a thread's packed ops if they repeat, and not many more than `limit` in any case."""
    chunk = Chunk.join(state.chunks)
    device, source = _devices(recorded, chunk.first_rows()), _devices(recorded, chunk.last_inputs())
    chunk.site[:] = _forward_sites(recorded, chunk, device)
    into = repetition.fold(_keys(chunk, device, source, _modules(state, chunk)), most, limit)
    kept = into == np.arange(len(into))
    if kept.all():
        return
    times = np.zeros(len(into), dtype=np.int64)
    np.add.at(times, into, chunk.times)
    left = chunk.select(kept, times[kept])
    _fold_rows(recorded, state, chunk, kept, left)
    _fold_copies(recorded, state, chunk, into)
    _fold_calls(state, chunk.number[kept], int(chunk.number[-1]))
    state.chunks = [left]
    gone = set((chunk.number[~kept] | state.index << THREAD_SHIFT).tolist())
    recorded.failures[:] = [failed for failed in recorded.failures if failed.op not in gone]


def _devices(recorded: RecordedOps, rows: Array) -> Array:
    """The devices of rows, numbered as the layouts name them; -1 for a row that is not known."""
    numbers: dict[str, int] = {}
    named = [numbers.setdefault(str(device), len(numbers)) for _, _, device in recorded.rows.layouts]
    known, layouts = known_rows(recorded)
    if not len(known):
        return np.full(len(rows), -1)
    at = np.minimum(np.searchsorted(known, rows), len(known) - 1)
    return np.where(known[at] == rows, np.array(named)[layouts[at]], -1)


def known_rows(recorded: RecordedOps) -> tuple[Array, Array]:
    """All rows that heads or tellings know, in order, and their layouts."""
    told = recorded.rows.all_told()
    chunks = [chunk for state in recorded.threads for chunk in state.chunks]
    rows = np.concatenate([told[:, 0], *(chunk.row[chunk.new] for chunk in chunks)]).astype(np.int64)
    layouts = np.concatenate([told[:, 1], *(chunk.layout[chunk.new] for chunk in chunks)]).astype(np.int64)
    order = np.argsort(rows, kind="stable")
    return rows[order], layouts[order]


def _forward_sites(recorded: RecordedOps, chunk: Chunk, device: Array) -> Array:
    """Sites with those of backward ops found while their forward ops are still there."""
    backward = (chunk.head & BACKWARD) > 0
    node = chunk.head >> NODE_SHIFT & NODES - 1
    ops = graph.Numbered(chunk.sequence, backward, chunk.plan, node, device, np.zeros(len(chunk), dtype=np.int64))
    forward = graph.forward_ops(ops, [plan.name for plan in by_id], [kind.__name__ for kind in recorded.nodes])
    return np.where(forward >= 0, chunk.site[forward], chunk.site)


def _modules(state: ThreadState, chunk: Chunk) -> Array:
    """The module of each op's innermost call."""
    module = np.full(len(chunk), -1)
    for call in state.calls():
        begin, end = np.searchsorted(chunk.number, (call.begin, call.end))
        module[begin:end] = call.module
    return module


def _keys(chunk: Chunk, device: Array, source: Array, module: Array) -> Array:
    """One number for all that must be equal in ops that count as the same."""
    flags = chunk.head & (BACKWARD | OPTIMIZER | MASK)
    columns = [chunk.plan, flags, chunk.site, device, source, module, chunk.duration < 0]
    _, keys = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return keys.reshape(-1).astype(np.int64)


def _fold_rows(recorded: RecordedOps, state: ThreadState, chunk: Chunk, kept: Array, left: Chunk) -> None:
    """Forget the rows that folded ops made, but those that what is kept speaks of: these become rows from nowhere."""
    rows = recorded.rows
    with rows.lock:
        spoken = _spoken_of(recorded, state, left)
        made = ~kept & chunk.new
        saved = made & np.isin(chunk.row, spoken)
        nowhere = np.full(int(saved.sum()), -1)
        orphans = np.stack([chunk.row[saved], chunk.layout[saved], nowhere, nowhere, chunk.site[saved]], axis=1)
        told = rows.all_told()
        numbers = np.where(told[:, 2] >> THREAD_SHIFT == state.index, told[:, 2] & NUMBERS, -1)
        lost = np.isin(numbers, chunk.number[~kept]) & (told[:, 2] >= 0)
        told[lost, 4] = chunk.site[np.searchsorted(chunk.number, numbers[lost])]
        told[lost, 2] = -1
        told = told[~lost | np.isin(told[:, 0], spoken)]
        gone = chunk.row[made]
        rows.fold(np.concatenate([told, orphans]), *((int(gone.min()), int(gone.max()) + 1) if len(gone) else (0, 0)))


def _spoken_of(recorded: RecordedOps, state: ThreadState, left: Chunk) -> Array:
    """The rows that are inputs or outputs of what is kept, here and in other threads, packed or not."""
    others = [other for thread in recorded.threads if thread is not state for other in thread.chunks]
    packed = [part for each in (left, *others) for part in (each.flat, each.row)]
    lists = [part[:] for thread in recorded.threads for part in (thread.flat, thread.heads[5::WIDTH])]
    return np.unique(np.concatenate([*packed, *(np.array(part, dtype=np.int64) for part in lists)]))


def _fold_copies(recorded: RecordedOps, state: ThreadState, chunk: Chunk, into: Array) -> None:
    """Count each folded op's copies where those of the op are that it was folded into."""
    place = {number | state.index << THREAD_SHIFT: at for at, number in enumerate(chunk.number.tolist())}
    left: list[Copied] = []
    held: dict[int, Copied] = {}
    for copied in recorded.copies:
        at = place.get(copied.op, -1)
        same = held.get(int(into[at])) if at >= 0 and into[at] != at else None
        if same is None:
            left.append(copied)
            held.setdefault(at, copied)
        else:
            same.times += copied.times
            same.more += copied.more + size_of(recorded.rows.layouts[copied.source])
    recorded.copies[:] = left


def _fold_calls(state: ThreadState, numbers: Array, last: int) -> None:
    """Forget the calls all of whose ops are gone."""
    left = array("q")
    for at in range(0, len(state.ended), CALL):
        call = state.ended[at : at + CALL]
        begin, end = np.searchsorted(numbers, (call[3], call[4]))
        if begin < end or call[4] > last:
            left.extend(call)
    state.ended = left
