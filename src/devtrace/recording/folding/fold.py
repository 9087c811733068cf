"""Folds a recording that has grown too long: an op that repeats another is counted there, and forgotten.

Folding starts a new epoch of stamps. Tensors that are still alive get a new row the next time an op uses them; old rows
stay only if a kept op refers to them.
"""

from array import array

import numpy as np

from devtrace.recording.columns import graph
from devtrace.recording.columns.chunk import BACKWARD, MASK, NODE_SHIFT, NODES, OPTIMIZER, WIDTH, Array, Chunk
from devtrace.recording.columns.operator_info import by_id
from devtrace.recording.columns.recorded_ops import Copied, RecordedOps
from devtrace.recording.columns.tensor_rows import size_of
from devtrace.recording.columns.thread_state import NUMBERS, THREAD_SHIFT, ThreadState
from devtrace.recording.folding import repetition


def fold(recorded: RecordedOps, state: ThreadState, most: int, limit: int) -> None:
    """Fold a thread's packed ops to `most` if they repeat, and to not many more than `limit` in any case."""
    chunk = Chunk.join(state.chunks)
    device, source = _devices_of_rows(recorded, chunk.first_rows(), chunk.last_inputs())
    chunk.site[:] = _forward_sites(recorded, chunk, device)
    targets = repetition.fold(_keys(chunk, device, source, _modules_of_ops(state, chunk)), most, limit)
    is_kept = targets == np.arange(len(targets))
    if is_kept.all():
        return
    times = np.zeros(len(targets), dtype=np.int64)
    np.add.at(times, targets, chunk.times)
    kept_chunk = chunk.select(is_kept, times[is_kept])
    _fold_rows(recorded, state, chunk, is_kept, kept_chunk)
    _fold_copies(recorded, state, chunk, targets)
    _fold_calls(state, chunk.number[is_kept], int(chunk.number[-1]))
    for observer in recorded.observers.values():
        observer.forget_ops(state.index, chunk.number[is_kept], int(chunk.number[-1]))
    state.chunks = [kept_chunk]
    folded_ops = set((chunk.number[~is_kept] | state.index << THREAD_SHIFT).tolist())
    recorded.failures[:] = [failed for failed in recorded.failures if failed.op not in folded_ops]
    recorded.waits[:] = [waited for waited in recorded.waits if waited.op not in folded_ops]


def _devices_of_rows(recorded: RecordedOps, *rows: Array) -> list[Array]:
    """Return the devices of rows, as numbers; -1 for a row that is not known."""
    ids: dict[str, int] = {}
    of_layout = np.array([ids.setdefault(str(device), len(ids)) for _, _, device in recorded.rows.layouts] + [-1])
    known, layouts = _known_rows(recorded)
    indexes = [np.minimum(np.searchsorted(known, wanted), len(known) - 1) for wanted in rows]
    return [np.where(known[at] == wanted, of_layout[layouts[at]], -1) for at, wanted in zip(indexes, rows, strict=True)]


def _known_rows(recorded: RecordedOps) -> tuple[Array, Array]:
    """Return all rows of heads and extra rows, in order, and their layouts; before them the row -1 without a layout."""
    extra = recorded.rows.extra_rows_table()
    chunks = [chunk for state in recorded.threads for chunk in state.chunks]
    rows = np.concatenate([[-1], extra[:, 0], *(chunk.row[chunk.adds_row] for chunk in chunks)]).astype(np.int64)
    layouts = np.concatenate([[-1], extra[:, 1], *(chunk.layout[chunk.adds_row] for chunk in chunks)]).astype(np.int64)
    order = np.argsort(rows, kind="stable")
    return rows[order], layouts[order]


def _forward_sites(recorded: RecordedOps, chunk: Chunk, device: Array) -> Array:
    """Return the sites of ops; of a backward op that of its forward op, which may be forgotten later."""
    backward = (chunk.head & BACKWARD) > 0
    node = chunk.head >> NODE_SHIFT & NODES - 1
    ops = graph.Numbered(chunk.sequence, backward, chunk.operator, node, device, np.zeros(len(chunk), dtype=np.int64))
    forward = graph.forward_ops(ops, [operator.name for operator in by_id], [kind.__name__ for kind in recorded.nodes])
    return np.where(forward >= 0, chunk.site[forward], chunk.site)


def _modules_of_ops(state: ThreadState, chunk: Chunk) -> Array:
    """Return the module of each op's innermost call."""
    module = np.full(len(chunk), -1)
    for call in state.calls():
        begin, end = np.searchsorted(chunk.number, (call.begin, call.end))
        module[begin:end] = call.module
    return module


def _keys(chunk: Chunk, device: Array, source: Array, module: Array) -> Array:
    """Return a number for each op, the same for ops that count as the same."""
    flags = chunk.head & (BACKWARD | OPTIMIZER | MASK)
    columns = [chunk.operator, flags, chunk.site, device, source, module, chunk.duration < 0]
    _, keys = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return keys.reshape(-1).astype(np.int64)


def _fold_rows(recorded: RecordedOps, state: ThreadState, chunk: Chunk, is_kept: Array, kept_chunk: Chunk) -> None:
    """Forget the rows that folded ops made. Those that a kept op refers to become extra rows without a producer."""
    rows = recorded.rows
    with rows.lock:
        referred = _rows_referred_to(recorded, state, kept_chunk)
        is_made = ~is_kept & chunk.adds_row
        is_saved = is_made & np.isin(chunk.row, referred)
        none = np.full(int(is_saved.sum()), -1)
        orphans = np.stack([chunk.row[is_saved], chunk.layout[is_saved], none, none, chunk.site[is_saved]], axis=1)
        extra = rows.extra_rows_table()  # row, layout, producer, source, site
        numbers = np.where(extra[:, 2] >> THREAD_SHIFT == state.index, extra[:, 2] & NUMBERS, -1)
        is_lost = np.isin(numbers, chunk.number[~is_kept]) & (extra[:, 2] >= 0)
        extra[is_lost, 4] = chunk.site[np.searchsorted(chunk.number, numbers[is_lost])]
        extra[is_lost, 2] = -1
        extra = extra[~is_lost | np.isin(extra[:, 0], referred)]
        gone = chunk.row[is_made]
        rows.fold(np.concatenate([extra, orphans]), *((int(gone.min()), int(gone.max()) + 1) if len(gone) else (0, 0)))


def _rows_referred_to(recorded: RecordedOps, state: ThreadState, kept_chunk: Chunk) -> Array:
    """Return the inputs and outputs of all ops that are left, here and in other threads, packed or not."""
    others = [other for thread in recorded.threads if thread is not state for other in thread.chunks]
    packed = [part for each in (kept_chunk, *others) for part in (each.flat, each.row)]
    lists = [part[:] for thread in recorded.threads for part in (thread.flat, thread.heads[5::WIDTH])]
    return np.unique(np.concatenate([*packed, *(np.array(part, dtype=np.int64) for part in lists)]))


def _fold_copies(recorded: RecordedOps, state: ThreadState, chunk: Chunk, targets: Array) -> None:
    """Add each folded op's copies to those of the op that it was folded into."""
    index_of_op = {number | state.index << THREAD_SHIFT: index for index, number in enumerate(chunk.number.tolist())}
    kept_copies: list[Copied] = []
    first_copy: dict[int, Copied] = {}
    for copied in recorded.copies:
        index = index_of_op.get(copied.op, -1)
        kept_copy = first_copy.get(int(targets[index])) if index >= 0 and targets[index] != index else None
        if kept_copy is None:
            kept_copies.append(copied)
            first_copy.setdefault(index, copied)
        else:
            kept_copy.times += copied.times
            kept_copy.more += copied.more + size_of(recorded.rows.layouts[copied.source])
    recorded.copies[:] = kept_copies


def _fold_calls(state: ThreadState, numbers: Array, last: int) -> None:
    """Forget the calls all of whose ops are gone."""
    kept_calls = array("q")
    for call in state.ended_calls():
        if has_ops(call.begin, call.end, numbers, last):
            kept_calls.extend(call)
    state.ended = kept_calls


def has_ops(begin: int, end: int, numbers: Array, last: int) -> bool:
    """Return whether an op of a span is among the numbers, or may come after the last that was packed."""
    return end > last or bool(np.diff(np.searchsorted(numbers, (begin, end)))[0])
