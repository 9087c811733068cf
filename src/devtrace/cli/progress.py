"""Shows on a terminal how far a program has come: a note at the right edge of the row that the program writes to.

Nothing that the program prints moves; a longer line of the program covers the note.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from devtrace.words.text_format import format_time, pluralize

if TYPE_CHECKING:
    from devtrace.recording.progress.counts import Counter

EVERY: Final = 1.0
"""Seconds between two notes: long enough to read one."""
MOST_DEVICES: Final = 4


class Progress:
    """Shows the counts of a recording and the time, until it is stopped."""

    def __init__(self, counter: Counter, stream: Any) -> None:
        self.counter = counter
        self.stream = stream
        self.begun = monotonic()
        self.ended = threading.Event()
        self._writing = threading.Lock()
        self._note = ""

    @classmethod
    def on_terminal(cls, counter: Counter | None) -> Progress | None:
        """Start it where stderr is a terminal that can move its cursor."""
        try:
            if counter is None or os.environ.get("TERM", "dumb") == "dumb" or not sys.stderr.isatty():
                return None
        except (AttributeError, ValueError):  # none, closed, or the program's own
            return None
        shown = cls(counter, sys.stderr)
        _thread.start_new_thread(shown._run, ())
        return shown

    def stop(self) -> None:
        """Clear the note."""
        with self._writing:
            if not self.ended.is_set():
                self.ended.set()
                self._draw(" " * len(self._note))

    def _run(self) -> None:
        while not self.ended.wait(EVERY):
            with self._writing:
                if not self.ended.is_set():
                    self._note = self._counts().rjust(len(self._note))
                    self._draw(self._note)

    def _counts(self) -> str:
        counts = self.counter.look()
        most = sorted(counts.devices.items(), key=lambda item: -item[1][0])[:MOST_DEVICES]
        devices = "".join(f", {device} {ops:,}" for device, (ops, _) in most)
        passed = format_time(int(monotonic() - self.begun) * 1e9)
        return f"devtrace: {pluralize(counts.ops, 'op')}{devices}, {passed}"

    def _draw(self, note: str) -> None:
        try:
            column = os.get_terminal_size(self.stream.fileno()).columns - len(note)
            if column > 0:
                self.stream.write(f"\x1b7\x1b[{column}G{note}\x1b8")  # keep the cursor, move it, write, put it back
                self.stream.flush()
        except (OSError, ValueError, RuntimeError):  # closed, or in the middle of the program's own write
            self.ended.set()
