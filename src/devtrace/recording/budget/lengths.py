"""Remembers how often a loop repeated before it ended, so that the next time its end is recorded.

What follows a loop (a loss that is read, an evaluation) runs no event, and begins while nothing is recorded. A loop in
another one mostly ends after as many repetitions as before.
"""

from collections.abc import Hashable


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
