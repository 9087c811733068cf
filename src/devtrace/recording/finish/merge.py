"""The ops of all threads as one set of columns, in order of start."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from devtrace.recording.columns.chunk import BACKWARD, GRAD, MASK, NODE_SHIFT, NODES, OPTIMIZER, Array, Chunk
from devtrace.recording.columns.operator_info import OperatorInfo, by_id
from devtrace.recording.columns.thread_state import NUMBERS, THREAD_SHIFT, ThreadState
from devtrace.trace.tables import Lists


class Merged:
    """Ops in order of start.

    `times` is the number of ops that a row counts for. `new_row` and `new_layout` are of an only output whose row is
    new, else -1.
    """

    def __init__(self, threads: Sequence[ThreadState], origin: int) -> None:
        chunks = [Chunk.join(state.chunks) for state in threads]
        every = Chunk.join(chunks)
        order = np.argsort(every.start, kind="stable")
        inputs, outputs, begins = every.input_count, every.output_count, every.begins()
        head = every.head[order]
        only = np.where(every.several, -1, every.row)
        self.operator = every.operator[order]
        self.node = (head >> NODE_SHIFT) & (NODES - 1)
        self.backward = (head & BACKWARD) > 0
        self.optimizer = (head & OPTIMIZER) > 0
        self.grad = ((head & GRAD) > 0).astype(np.int32)
        self.mask = (head & MASK) > 0
        self.site = every.site[order]
        self.start = np.maximum(every.start[order] - origin, 0)
        self.duration = every.duration[order]
        self.sequence = every.sequence[order]
        self.thread = np.repeat(np.arange(len(chunks)), [len(chunk) for chunk in chunks])[order]
        self.times = every.times[order]
        self.inputs = Lists.gather(begins[order], inputs[order], every.flat)
        self.outputs = _outputs(every.flat, (begins + inputs)[order], outputs[order], only[order])
        self.new_row = np.where(every.adds_row, every.row, -1)[order]
        self.new_layout = np.where(every.adds_row, every.layout, -1)[order]
        self.numbering = OpNumbering([chunk.number for chunk in chunks], order)

    def __len__(self) -> int:
        return len(self.operator)

    def by_operator(self, read: Callable[[OperatorInfo], Any]) -> Array:
        """Return for each op what `read` returns for its operator."""
        return np.array([read(operator) for operator in by_id] or [0])[self.operator]


def _outputs(flat: Array, begins: Array, counts: Array, only: Array) -> Lists:
    """Return the lists flat[begin : begin + count]; where there is one output it is `only`."""
    single = only >= 0
    lists = Lists.gather(np.where(single, len(flat), begins), np.where(single, 1, counts), np.append(flat, -1))
    lists.flat[lists.offsets[:-1][single]] = only[single]
    return lists


class OpNumbering:
    """Maps an op's number in its thread to its id in the trace."""

    def __init__(self, numbers: Sequence[Array], order: Array) -> None:
        self._numbers = numbers
        inverse = np.empty(len(order), dtype=np.int64)
        inverse[order] = np.arange(len(order))
        self._ids = np.split(inverse, np.cumsum([len(in_thread) for in_thread in numbers])[:-1]) if numbers else []

    def ids_of(self, packed: Array) -> Array:
        """Return the trace's ids of ops, each given as thread and number in one integer; -1 for -1 or a folded op."""
        ids = np.full(len(packed), -1, dtype=np.int64)
        for thread, (known, known_ids) in enumerate(zip(self._numbers, self._ids, strict=True)):
            of_thread = np.flatnonzero((packed >= 0) & (packed >> THREAD_SHIFT == thread))
            ids[of_thread] = np.append(known_ids, -1)[indexes_in(known, packed[of_thread] & NUMBERS)]  # -1 gives -1
        return ids

    def boundary(self, thread: int, number: int) -> int:
        """Return the first id of an op of this thread with this number or a later one."""
        known, ids = self._numbers[thread], self._ids[thread]
        index = int(np.searchsorted(known, number))
        return int(ids[index]) if index < len(ids) else (int(ids[-1]) + 1 if len(ids) else 0)


def indexes_in(known: Array, wanted: Array) -> Array:
    """Return the index of each wanted value among the known ones, which are in order; -1 for none."""
    indexes = np.searchsorted(known, wanted)
    is_known = indexes < len(known)
    is_known[is_known] = known[indexes[is_known]] == wanted[is_known]
    return np.where(is_known, indexes, -1)
