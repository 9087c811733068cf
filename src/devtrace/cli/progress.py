"""The line that says how far a program has come, on a terminal only: at its foot, out of the way of what is printed.

The foot is taken out of the region that scrolls (as apt does), so that neither a print nor a progress bar of the
program mixes with it.
"""

from __future__ import annotations

import _thread
import os
import sys
import threading
from time import monotonic
from typing import Any, Final

from devtrace.words.text_format import format_time, pluralize

EVERY: Final = 0.5
"""Seconds between two looks: what one can read, and nothing that one can measure."""
MOST_DEVICES: Final = 4


class Progress:
    """Shows what a counter counts, and the time, until it is stopped."""

    def __init__(self, counter: Any, stream: Any, lines: int) -> None:
        self.counter = counter
        self.stream = stream
        self.lines = lines
        self.begun = monotonic()
        self.ended = threading.Event()
        self._writing = threading.Lock()

    @classmethod
    def on_terminal(cls, counter: Any) -> Progress | None:
        """Start it where stderr is a terminal that can be written to at any place."""
        stream = sys.stderr
        try:
            if os.environ.get("TERM", "dumb") == "dumb" or not stream.isatty():
                return None
            lines = os.get_terminal_size(stream.fileno()).lines
        except (AttributeError, OSError, ValueError):
            return None
        if lines < 4:
            return None
        shown = cls(counter, stream, lines)
        shown._write(f"\n\x1b7\x1b[1;{lines - 1}r\x1b8\x1b[1A")
        _thread.start_new_thread(shown._run, ())
        return shown

    def stop(self) -> None:
        """Give the foot of the terminal back."""
        with self._writing:
            if not self.ended.is_set():
                self.ended.set()
                self._write(f"\x1b7\x1b[{self.lines};1H\x1b[2K\x1b[r\x1b8")

    def line(self) -> str:
        counts = self.counter.look()
        most = sorted(counts.devices.items(), key=lambda item: -item[1][0])[:MOST_DEVICES]
        devices = "".join(f", {device} {ops:,}" for device, (ops, _) in most)
        passed = format_time(int(monotonic() - self.begun) * 1e9)
        return f"devtrace: {pluralize(counts.ops, 'op')}{devices}, {passed}"

    def _run(self) -> None:
        while not self.ended.wait(EVERY):
            with self._writing:
                if not self.ended.is_set():
                    self._write(f"\x1b7\x1b[{self.lines};1H\x1b[2K{self.line()}\x1b8")

    def _write(self, text: str) -> None:
        try:
            self.stream.write(text)
            self.stream.flush()
        except (OSError, ValueError):
            self.ended.set()
