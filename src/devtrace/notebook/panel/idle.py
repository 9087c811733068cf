"""Lists the namespace in the kernel's idle time: some milliseconds at a time, given up as soon as a cell begins."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

from devtrace.notebook.inventory.inventory import Steps

SETTLE: Final = 0.1
"""Seconds of idleness before a listing begins: the cells of a Run All follow each other sooner."""
SLICE: Final = 0.004
"""Seconds that the kernel's next message may have to wait for a listing."""
PAUSE: Final = 0.001


@dataclass(eq=False, slots=True)
class Lister:
    """Makes one listing at a time, in the thread of the kernel's loop, while `wanted()` is true."""

    _loop: asyncio.AbstractEventLoop | None
    _start: Callable[[], Steps]
    _wanted: Callable[[], bool]
    _listed: Callable[[dict[str, Any]], None]
    _in_cell: bool = False
    _steps: Steps | None = None
    _timer: asyncio.TimerHandle | None = None

    def cell_begins(self, _: object = None) -> None:
        self._in_cell = True
        self._end_listing()

    def cell_ended(self, _: object = None) -> None:
        self._in_cell = False
        self.later()

    def close(self) -> None:
        self._end_listing()
        self._loop = None

    def later(self) -> None:
        """List again, from the loop's own thread."""
        self._end_listing()
        if self._loop is not None and not self._in_cell and self._wanted():
            self._timer = self._loop.call_later(SETTLE, self._step)

    def when_idle(self, action: Callable[[], None]) -> None:
        """Do something in the loop's own thread when it has nothing else to do; at once where there is no loop."""
        if self._loop is None:
            action()
        else:
            self._loop.call_soon_threadsafe(action)

    def _step(self) -> None:
        """Go on for a moment, and leave the rest for after the kernel's next message."""
        self._timer = None
        if self._loop is None or not self._wanted():
            self._end_listing()
            return
        if self._steps is None:
            self._steps = self._start()
        end = perf_counter() + SLICE
        try:
            while perf_counter() < end:
                next(self._steps)
        except StopIteration as stop:
            self._steps = None
            self._listed(stop.value)
        else:
            self._timer = self._loop.call_later(PAUSE, self._step)

    def _end_listing(self) -> None:
        """End the listing, which keeps alive the objects that it has found."""
        if self._timer is not None:
            self._timer.cancel()
        if self._steps is not None:
            self._steps.close()
        self._timer = self._steps = None
