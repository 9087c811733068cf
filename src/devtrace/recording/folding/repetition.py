"""Chooses the ops of a long recording that are folded away: whole repetitions of kept ones. Pure functions on keys.

Two ops with the same key did the same at the same line in the same module on the same device. Folding gives each op
the index of a kept op with its key, so that counts stay exact: a kept op counts for itself and for all that were
folded into it.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from devtrace.recording.columns.chunk import Array

_WINDOW = 64
_CANDIDATES = 48


class Repetition(NamedTuple):
    """keys[start:end] repeats itself every `period`."""

    start: int
    end: int
    period: int

    @property
    def repetitions(self) -> int:
        return (self.end - self.start) // self.period

    @property
    def foldable(self) -> int:
        return (self.repetitions - 2) * self.period


def fold(keys: Array, most: int, limit: int) -> Array:
    """Return for each op the index of the op that counts for it from now on, so that `most` are left.

    A kept op has its own index. The first and the last repetition of a run stay, and so do ops that do not repeat.
    Where that leaves more than `limit`, ops from the middle are folded one by one into earlier ones of the same key.
    """
    targets = kept = np.arange(len(keys))
    while len(kept) > most:
        run = longest_run(keys[kept], len(kept) - most)
        # Short runs (the copies of one `.to()`) are worth reading, unless there is no room.
        if run is None or (len(kept) <= limit and run.foldable < most // 50):
            break
        targets, kept = _fold_kept(targets, kept, _fold_run(run, most, len(kept)))
    if len(kept) > limit:
        targets, kept = _fold_kept(targets, kept, _fold_one_by_one(keys[kept], most))
    return targets


def _fold_kept(earlier_targets: Array, kept: Array, targets: Array) -> tuple[Array, Array]:
    """Fold the kept ops into those at `targets`, indexes into `kept`, and with them all that were folded into them."""
    step = np.arange(len(earlier_targets))
    step[kept] = kept[targets]
    return step[earlier_targets], kept[targets == np.arange(len(kept))]


def longest_run(keys: Array, enough: int) -> Repetition | None:
    """Return the run that lets the most ops be folded, or the first that lets `enough` be folded."""
    best, most = None, 0
    for end in _ends(len(keys)):
        for run in _runs(keys[:end]):
            if run.foldable > most:
                best, most = run, run.foldable
            if most >= enough:
                return best
    return best


def _ends(count: int) -> Iterator[int]:
    """Yield indexes at which a run may end: after the last op, while a loop runs; else somewhere before."""
    for part in (16, 15, 14, 13, 12, 10, 8, 6, 4, 2, 1):
        if count * part // 16 >= 3:
            yield count * part // 16


def _runs(keys: Array) -> Iterator[Repetition]:
    """Yield runs of at least three repetitions that reach to the end, shortest period first."""
    for period in _periods(keys):
        differs = np.flatnonzero(keys[period:] != keys[:-period])
        start = int(differs[-1]) + 1 if len(differs) else 0
        if len(keys) - start >= 3 * period:
            yield Repetition(start, len(keys), period)


def _periods(keys: Array) -> Iterator[int]:
    """Yield how far back the last keys occurred before, nearest first, as far as they may repeat three times."""
    raw, size = np.ascontiguousarray(keys).tobytes(), keys.itemsize
    window = max(1, min(_WINDOW, len(keys) // 4))
    tail = raw[-window * size :]
    end = len(raw) - 1
    for _ in range(_CANDIDATES):
        at = raw.rfind(tail, 0, end)
        period = len(keys) - window - at // size
        if at < 0 or 3 * period > len(keys):
            return
        if at % size == 0:
            yield period
        end = at + len(tail) - 1


def _fold_run(run: Repetition, most: int, count: int) -> Array:
    """Fold the middle repetitions of a run into its first one.

    The cut starts at about `most / 4`, so that repeated folding keeps cutting at the same index.
    """
    targets = np.arange(count)
    folded = min(run.repetitions - 2, -(-(count - most) // run.period))
    first_folded = max(1, min(-(-(most // 4 - run.start) // run.period), run.repetitions - 1 - folded))
    begin = run.start + first_folded * run.period
    end = begin + folded * run.period
    targets[begin:end] = run.start + np.arange(end - begin) % run.period
    return targets


def _fold_one_by_one(keys: Array, most: int) -> Array:
    """Fold all but the first and last quarters of `most` into the first op of the same key."""
    targets = np.arange(len(keys))
    _, firsts, inverse = np.unique(keys, return_index=True, return_inverse=True)
    middle = slice(most // 4, len(keys) - most // 4)
    targets[middle] = firsts[inverse][middle]
    return targets
