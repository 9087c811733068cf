"""Shows on a terminal how far a program has come: a note at the right edge of the row that the program writes to.

Nothing that the program prints moves; a longer line of the program covers the note.
"""

import _thread
import os
import sys
import threading
from time import monotonic
from typing import Any, Final

from devtrace.words.catalogue import comma, sentence

EVERY: Final = 1.0
"""Seconds between two notes: long enough to read one."""


def on_terminal() -> bool:
    try:
        return os.environ.get("TERM", "dumb") != "dumb" and sys.stderr.isatty()
    except (AttributeError, ValueError):  # no stderr, a closed one, or the program's own
        return False


class Progress:
    """Shows what a counter counts, and the time, until it is stopped."""

    def __init__(self, counter: Any) -> None:
        self.counter, self.stream, self.begun = counter, sys.stderr, monotonic()
        self._ended, self._writing, self._note = threading.Event(), threading.Lock(), ""
        _thread.start_new_thread(self._run, ())

    def stop(self) -> None:
        self._ended.set()
        with self._writing:
            self._draw(" " * len(self._note))

    def _run(self) -> None:
        while not self._ended.wait(EVERY):
            with self._writing:
                if not self._ended.is_set():
                    self._draw(self._text().rjust(len(self._note)))

    def _text(self) -> str:
        counts = self.counter.look()
        devices = (f"{device} {ops:,}" for device, (ops, _) in counts.devices.items())
        shown = comma().join([sentence("run.ops", count=counts.ops), *devices])
        return sentence("run.progress", counts=shown, time=int(monotonic() - self.begun) * 1e9)

    def _draw(self, note: str) -> None:
        """Keep the cursor, move it, write, and put it back; nothing where the note does not fit."""
        self._note = note
        try:
            column = os.get_terminal_size(self.stream.fileno()).columns - len(note)
            if note and column > 0:
                self.stream.write(f"\x1b7\x1b[{column}G{note}\x1b8")
                self.stream.flush()
        except (OSError, ValueError, RuntimeError):  # closed, or in the middle of the program's own write
            return
