"""A loop that was found: what a repetition of it is, what one costs in each way, and how many of them to leave out.

Remembers too how often it repeated before it ended, so that the next time its end is recorded. What follows a loop (a
loss that is read, an evaluation) runs no event, and begins while nothing is recorded. A loop in another one mostly ends
after as many repetitions as before.
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Final

from devtrace.recording.budget.segments import Segment, is_call


class Lengths:
    """Complete repetitions of the loop that runs now, recorded or not, and of all others when their last one began."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}
        self._loop: Hashable = None
        self._now = 0

    def begin(self, loop: Hashable, repetitions: int) -> None:
        """Begin a loop, with so many repetitions."""
        self._loop, self._now = loop, repetitions

    def add(self, repetitions: int) -> None:
        self._now += repetitions

    def end(self) -> None:
        if self._loop is not None:
            self._known[self._loop] = self._now
        self._loop, self._now = None, 0

    def until_the_last(self) -> int | None:
        """Return how many repetitions come before the one that was the last one; None for a loop that goes beyond."""
        length = self._known.get(self._loop, -1)
        return None if length < self._now else length - self._now


FIRST_BATCH: Final = 32
SHARE_OF_RECORDING: Final = 0.25
"""Part of the budget that recorded repetitions may take,"""
SHARE_OF_WATCHING: Final = 0.3
"""... and the comparing of each event. What is learned, and the hooks that stay, take the rest."""
WINDOW: Final = 4
WINDOWS: Final = 32
"""So many windows of repetitions, watched and counted in turns, tell what watching costs."""
ASKED_FIRST: Final = 96
"""... after so many of them were left out, and again after AGAIN times as many."""
AGAIN: Final = 4


@dataclass(slots=True)
class Spent:
    """Repetitions that were run in one way, and the nanoseconds of one: the least, as others only add to it."""

    repetitions: int = 0
    each: float = inf
    in_windows: float = inf  # ... of those short times that are compared with each other

    def add(self, repetitions: int, nanoseconds: int) -> None:
        if repetitions:
            self.repetitions += repetitions
            self.each = min(self.each, nanoseconds / repetitions)
            if repetitions == WINDOW:
                self.in_windows = min(self.in_windows, nanoseconds / repetitions)


@dataclass(eq=False)
class Loop:
    """`recorded` and `left_out` are its repetitions so far; of a batch that is left out `left` are still to come."""

    share: float
    segments: list[Segment] = field(default_factory=list)
    sites: set[int] = field(default_factory=set)
    recorded: int = 0
    left_out: int = 0
    batch: int = FIRST_BATCH
    planned: int = 0
    left: int = 0
    offsets: list[int] = field(default_factory=list)
    """Calls and steps of a repetition before each of its segments, and all of them."""
    is_regular: bool = False  # they were the same in the last two repetitions
    left_for: Counter[Hashable] = field(default_factory=Counter)  # by line: how often one that is not the loop's came
    sampled: Spent = field(default_factory=Spent)
    watched: Spent = field(default_factory=Spent)
    counted: Spent = field(default_factory=Spent)
    _windows: int = 0
    _asked_at: int = ASKED_FIRST

    @property
    def plain(self) -> float:
        """Return the nanoseconds of a repetition of which nothing is recorded, as far as that is known."""
        return min(self.watched.each, self.counted.each)

    def times(self) -> tuple[float, float]:
        """Return the nanoseconds that all repetitions take without a recording, and those that it added to them."""
        plain = self.plain
        if not isfinite(plain):
            return 0.0, 0.0  # too short to tell
        sampled = self.sampled.each if isfinite(self.sampled.each) else plain
        watching = (self.watched.each - plain) * self.watched.repetitions
        return plain * (self.recorded + self.left_out), (sampled - plain) * self.recorded + watching

    def note_offsets(self, offsets: list[int]) -> None:
        self.is_regular = offsets == self.offsets and is_call(self.segments[0].event)
        self.offsets = offsets

    def note_sample(self, nanoseconds: int) -> None:
        """Take the time of a recorded repetition: leave out so many after it that the budget is kept."""
        self.sampled.add(1, nanoseconds)
        if isfinite(plain := self.plain):
            extra = max(self.sampled.each - plain, 0.0)
            limit = int(extra / (self.share * SHARE_OF_RECORDING * max(plain, 1.0))) + 1
            self.batch = max(min(2 * self.batch, limit), FIRST_BATCH)

    def begin_batch(self, until_the_last: int | None) -> None:
        """Plan how many repetitions to leave out; where the loop will end soon, all but its last."""
        ends_soon = until_the_last is not None and until_the_last <= 2 * self.batch
        self.planned = self.left = until_the_last if ends_soon and until_the_last else self.batch
        if self.left_out >= self._asked_at:
            self._windows, self._asked_at = WINDOWS, AGAIN * self.left_out

    def window(self) -> tuple[bool, int]:
        """Return whether the next repetitions are only counted, and how many these are."""
        if not self.is_regular or (self._windows and self.left < WINDOW):
            return False, self.left
        if self._windows:
            self._windows -= 1
            return self._windows % 2 == 0, WINDOW
        watched = int(self._affordable() * self.planned) - (self.planned - self.left)
        return (False, min(watched, self.left)) if watched > 0 else (True, self.left)

    def _affordable(self) -> float:
        """Return the part of the repetitions whose events may be compared."""
        counted = self.counted.in_windows
        extra = self.watched.in_windows - counted
        return 1.0 if extra <= 0 or not isfinite(extra) else min(self.share * SHARE_OF_WATCHING * counted / extra, 1.0)
