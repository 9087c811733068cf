"""What ran between two events, as it was recorded last: that stands for the times that it is only counted.

    call of model -- ops --> call of criterion -- ops --> step of optimizer -- ops --> call of model

Each arrow is a `Segment`.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from math import inf
from typing import Final

import numpy as np

from devtrace.recording.columns import sites
from devtrace.recording.columns.chunk import WIDTH, Array, Chunk
from devtrace.recording.columns.recorded_ops import RecordedOps
from devtrace.recording.columns.tensor_rows import size_of
from devtrace.recording.columns.thread_state import NUMBERS, THREAD_SHIFT, ThreadState

NEEDED: Final = 6  # runs that are alike: then a segment is known; the rules on copies ask for five
FIRST_BATCH: Final = 32

Key = tuple[int, ...]


class Run:
    """Ops that are recorded from here on, until `end`: of each thread, as number, head, site and layout."""

    def __init__(self, recorded: RecordedOps, loop: int) -> None:
        self._recorded_ops, self.loop = recorded, loop
        self.seen = self.seen_in_loop = 1  # times that one like it ran until now; those in the same loop
        self._begins = {state.index: state.op & NUMBERS for state in recorded.threads}
        self._first_copy = len(recorded.copies)

    def end(self) -> None:
        self.copies = self._recorded_ops.copies[self._first_copy :]
        parts = [(state, _ops_since(state, self._begins.get(state.index, 0))) for state in self._recorded_ops.threads]
        self.ops = np.concatenate([ops for _, ops in parts])
        self.parts = [part for part in parts if len(part[1])]

    def is_like(self, other: "Run") -> bool:
        """Return whether the same ops ran at the same lines, and copied the same, with layouts that both may have."""
        if not np.array_equal(self.ops[:, 1:3], other.ops[:, 1:3]):
            return False
        copies, other_copies = ([(copy.source, copy.target) for copy in run.copies] for run in (self, other))
        layouts, other_layouts = self.ops[:, 3], other.ops[:, 3]
        return copies == other_copies and bool(((layouts == other_layouts) | (layouts < 0) | (other_layouts < 0)).all())

    def next_round(self) -> Array:
        """Return the ops from where the code goes back: of a loop that goes on."""
        places = [sites.position(sites.own(site)) if site >= 0 else None for site in self.ops[:, 2].tolist()]
        for index, (before, here) in enumerate(pairwise(places), 1):
            if before and here and before.code is here.code and here.instruction < before.instruction:
                return self.ops[index:]
        return self.ops[:0]

    def count(self, times: int, later: Array | None = None) -> int:
        """Count each op `times` more, or once less if it is among the ops `later`; return the ops counted."""
        ran_later, total = Counter(map(tuple, later[:, 1:3].tolist() if later is not None else ())), 0
        for state, ops in self.parts:
            state.pack()
            more = np.full(len(ops), times, dtype=np.int32)
            for index, op in enumerate(map(tuple, ops[:, 1:3].tolist()) if ran_later else ()):
                more[index] -= ran_later[op] > 0
                ran_later[op] -= 1
            for chunk in _chunks_since(state, ops[0, 0]):
                first, last = np.searchsorted(chunk.number, (ops[0, 0], ops[-1, 0] + 1))
                chunk.times[first:last] += more[np.searchsorted(ops[:, 0], chunk.number[first:last])]
            for copy in self.copies:
                if copy.op >> THREAD_SHIFT == state.index:
                    again = int(more[np.searchsorted(ops[:, 0], copy.op & NUMBERS)])
                    copy.times += again
                    copy.more += again * size_of(self._recorded_ops.rows.layouts[copy.source])
            total += int(more.sum())
        return total


def _chunks_since(state: ThreadState, begin: int) -> Iterator[Chunk]:
    """Yield the chunks with ops from a number on, the last one first."""
    return takewhile(lambda chunk: len(chunk) and chunk.number[-1] >= begin, reversed(state.chunks))


def _ops_since(state: ThreadState, begin: int) -> Array:
    first = max(begin, state.packed)
    chunks = [Chunk.of(state.heads[(first - state.packed) * WIDTH :], [], first), *_chunks_since(state, begin)]
    columns = [(chunk.number, chunk.head, chunk.site, chunk.layout) for chunk in reversed(chunks)]
    ops = np.concatenate([np.column_stack(each) for each in columns])
    return ops[ops[:, 0] >= begin]


@dataclass(eq=False, slots=True)
class Segment:
    """Stretch from one event to `end`: the latest of its runs that are not alike, each as it was recorded last."""

    end: "Event"
    runs: list[Run] = field(default_factory=list)
    is_known: bool = False

    def note(self, run: Run) -> None:
        """Add a run in place of the earlier one like it; the segment is known once enough runs were alike."""
        match = next((earlier for earlier in self.runs if run.is_like(earlier)), None)
        if match is not None:
            self.runs.remove(match)
            run.seen += match.seen
            run.seen_in_loop += match.seen_in_loop if match.loop == run.loop else 0
        self.runs = [*self.runs[-NEEDED:], run]
        self.is_known = run.seen >= NEEDED

    def count(self, times: int) -> int:
        """Share so many repetitions among the known runs, by how often each was seen; return the ops counted."""
        known_runs = [run for run in self.runs if run.seen >= NEEDED and run.loop == self.runs[-1].loop]
        seen_until = np.cumsum([0, *(run.seen_in_loop for run in known_runs)])
        shares = np.diff(times * seen_until // seen_until[-1]).tolist()
        return sum(run.count(part) for run, part in zip(known_runs, shares, strict=True))


@dataclass(eq=False, slots=True)
class Event:
    """A call of an outermost module, told apart by all calls that lead to it, a step of an optimizer, or a new line."""

    key: Key
    after: dict[Key, Segment] = field(default_factory=dict)  # what followed it
    last: Run | None = None
    repetitions: int = 0  # of this loop, each until the event comes again
    batch: int = FIRST_BATCH  # how many of them are left out next
    recorded_time: float = inf  # nanoseconds of one that is recorded
    skipped_time: float = inf  # ... that is left out
