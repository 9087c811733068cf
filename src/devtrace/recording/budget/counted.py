"""Gives what was only counted to the ops that stand for it: as folding does, by the number that a row counts for."""

from collections import Counter
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np

from devtrace.recording.budget.segments import Range, Segment, columns
from devtrace.recording.columns.recorded_ops import RecordedOps
from devtrace.recording.columns.tensor_rows import size_of
from devtrace.recording.columns.thread_state import NUMBERS, THREAD_SHIFT, ThreadState


@dataclass
class Counted:
    """Counts of ops that were not recorded, until `apply` adds them to the rows of those recorded in their stead."""

    recorded: RecordedOps
    ops: int = 0
    _due: Counter[Range] = field(default_factory=Counter)  # part of a thread's ops -> times
    _lock: Any = field(default_factory=Lock)

    def add(self, segment: Segment, times: int) -> None:
        if times:
            self.ops += times * segment.ops
            self._add({part: times for part in segment.ranges if part.begin < part.end})

    def add_unrecorded(self, segment: Segment, recorded: tuple[Range, ...], lacking: tuple[Range, ...] = ()) -> None:
        """Add the ops of a segment that are not among those recorded of its last run, which began late.

        `lacking`: ops that this run may not have had.
        """
        seen = Counter(key for part in recorded for _, key in self._keys(part))
        for part in segment.ranges:
            for number, key in self._keys(part):
                if seen[key] > 0:
                    seen[key] -= 1
                elif not any(gone.thread == part.thread and gone.begin <= number < gone.end for gone in lacking):
                    self.ops += 1
                    self._add({Range(part.thread, number, number + 1): 1})

    def _add(self, due: dict[Range, int]) -> None:
        with self._lock:
            self._due.update(due)

    def _keys(self, part: Range) -> list[tuple[int, tuple[int, int]]]:
        number, head, site, _ = columns(self.recorded.threads[part.thread], part.begin, part.end)
        return list(zip(number.tolist(), zip(head.tolist(), site.tolist(), strict=True), strict=True))

    def apply(self, state: ThreadState) -> None:
        """Add to the rows of a thread, all packed, what is due to them."""
        with self._lock:
            due = [(part, self._due.pop(part)) for part in list(self._due) if part.thread == state.index]
        for part, times in due:
            for chunk in reversed(state.chunks):
                if not len(chunk) or chunk.number[-1] < part.begin:
                    break
                first, last = np.searchsorted(chunk.number, (part.begin, part.end))
                chunk.times[first:last] += times
        self._apply_to_copies(state, due)

    def _apply_to_copies(self, state: ThreadState, due: list[tuple[Range, int]]) -> None:
        if not due:
            return
        layouts = self.recorded.rows.layouts
        changes: Counter[int] = Counter()
        for part, times in due:
            changes[part.begin] += times
            changes[part.end] -= times
        bounds = np.array(sorted(changes))
        levels = np.cumsum([changes[bound] for bound in bounds.tolist()])
        for copied in self.recorded.copies:
            at = int(np.searchsorted(bounds, copied.op & NUMBERS, side="right")) - 1
            if copied.op >> THREAD_SHIFT == state.index and at >= 0 and levels[at]:
                copied.times += int(levels[at])
                copied.more += int(levels[at]) * size_of(layouts[copied.source])
