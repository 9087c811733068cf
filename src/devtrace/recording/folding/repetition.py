"""Which ops of a long recording may be folded away: whole repetitions of what is kept. Pure functions on keys.

Two ops with the same key did the same at the same line in the same module on the same device. Folding gives each op
the place of a kept op with its key, so that counts stay exact: a kept op stands for itself and for all that were
folded into it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_WINDOW = 64
_CANDIDATES = 48


class Run(NamedTuple):
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
    """For each op the place of the op that stands for it from now on (its own: it is kept), so that `most` are left.

    The first and the last repetition of a run stay, and what is no repetition. Where that leaves more than `limit`, ops
    from the middle are folded one by one into earlier ones of the same key.
    """
    into = np.arange(len(keys))
    kept = into
    while len(kept) > most:
        run = longest_run(keys[kept], len(kept) - most)
        # Short runs (the copies of one `.to()`) are worth reading, unless there is no room.
        if run is None or (len(kept) <= limit and run.foldable < most // 50):
            break
        places = _folded(run, most, len(kept))
        into[kept] = kept[places]
        kept = kept[places == np.arange(len(kept))]
    if len(kept) > limit:
        into[kept] = kept[_one_by_one(keys[kept], most)]
    return _resolved(into)


def _resolved(into: Array) -> Array:
    """An op folded into one that was itself folded later ends where that one ended."""
    while True:
        further = into[into]
        if np.array_equal(further, into):
            return into
        into = further


def longest_run(keys: Array, wanted: int) -> Run | None:
    """The run of at least three repetitions that lets the most ops be folded; the first that lets as many as wanted."""
    best, most = None, 0
    for end in _ends(len(keys)):
        for run in _runs(keys[:end]):
            if run.foldable > most:
                best, most = run, run.foldable
            if most >= wanted:
                return best
    return best


def _ends(count: int) -> Iterator[int]:
    """Where a run may end: at the last op, while a loop runs; else somewhere before."""
    for part in (16, 15, 14, 13, 12, 10, 8, 6, 4, 2, 1):
        if count * part // 16 >= 3:
            yield count * part // 16


def _runs(keys: Array) -> Iterator[Run]:
    """Runs that reach to the end, shortest period first."""
    seen = set()
    for period in _periods(keys):
        if period in seen or 3 * period > len(keys):
            continue
        seen.add(period)
        differs = np.flatnonzero(keys[period:] != keys[:-period])
        start = int(differs[-1]) + 1 if len(differs) else 0
        if len(keys) - start >= 3 * period:
            yield Run(start, len(keys), period)


def _periods(keys: Array) -> Iterator[int]:
    """How far back the last keys occurred before."""
    raw, size = np.ascontiguousarray(keys).tobytes(), keys.itemsize
    window = max(1, min(_WINDOW, len(keys) // 4))
    tail = raw[-window * size :]
    end = len(raw) - 1
    for _ in range(_CANDIDATES):
        at = raw.rfind(tail, 0, end)
        if at < 0:
            return
        if at % size == 0:
            yield len(keys) - window - at // size
        end = at + len(tail) - 1


def _folded(run: Run, most: int, count: int) -> Array:
    """Fold repetitions of a run into its first, from about a quarter of `most` on, where earlier folding left its
    gap.
    """
    places = np.arange(count)
    dropped = min(run.repetitions - 2, -(-(count - most) // run.period))
    first = max(1, min(-(-(most // 4 - run.start) // run.period), run.repetitions - 1 - dropped))
    begin = run.start + first * run.period
    end = begin + dropped * run.period
    places[begin:end] = run.start + np.arange(end - begin) % run.period
    return places


def _one_by_one(keys: Array, most: int) -> Array:
    """Fold all but the first and last quarters of `most` into the first op of the same key."""
    places = np.arange(len(keys))
    _, firsts, inverse = np.unique(keys, return_index=True, return_inverse=True)
    middle = slice(most // 4, len(keys) - most // 4)
    places[middle] = firsts[inverse][middle]
    return places
