"""Keeps on disk in which line a rank is, for the case that it is killed: `trace/lost_ranks.py` reads it."""

import _thread
import contextlib
import linecache
import os
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Final

from devtrace.runtime.tracebacks import outward
from devtrace.source.user_code import owner_of
from devtrace.trace.lost_ranks import LastWords, last_words_file

EVERY: Final = 1.0
"""Seconds between two looks at the main thread."""


class LastLine:
    """Line of the main thread, looked up every second until it is stopped. Where it cannot be written, none is."""

    def __init__(self, trace: Path) -> None:
        self._path = last_words_file(trace)
        self._stopped = threading.Event()
        self._writing = threading.Lock()
        self._words = LastWords()
        self._length = 0
        with contextlib.suppress(OSError):
            self._file = os.open(self._path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o666)
            _thread.start_new_thread(self._run, ())

    def stop(self) -> None:
        self._stopped.set()

    def saved(self) -> None:
        """Forget the line: the trace has it."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def lost(self, reason: str) -> None:
        """Keep why the trace is not where it was to be."""
        self._write(self._words, reason)

    def _run(self) -> None:
        while not self._stopped.is_set():
            words = position_of_main_thread()
            if (words.file, words.line) != (self._words.file, self._words.line):
                self._write(words)
            self._stopped.wait(EVERY)

    def _write(self, words: LastWords, unsaved: str = "") -> None:
        with self._writing, contextlib.suppress(AttributeError, OSError):
            now = datetime.now(UTC).isoformat(timespec="microseconds")
            self._words = LastWords(words.file, words.line, words.text, now, unsaved)
            encoded = self._words.encoded()
            self._length = max(self._length, len(encoded))
            os.pwrite(self._file, encoded.ljust(self._length), 0)  # in one piece, whenever the process is killed


def position_of_main_thread() -> LastWords:
    return position_of(sys._current_frames().get(threading.main_thread().ident or 0))


def position_of(frame: FrameType | None) -> LastWords:
    """Return the innermost line of the user's own code."""
    for each in outward(frame):
        file, line = each.f_code.co_filename, each.f_lineno or 0
        if owner_of(file) == "user":
            return LastWords(file, line, linecache.getline(file, line).strip())
    return LastWords()
