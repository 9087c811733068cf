"""The thread that sends changes to the panels: many changes become one message, and at most eight a second leave.

It sleeps until something changed. While a cell is traced and a panel is visible, it reads the recording's counters from
time to time. It touches nothing in the thread that runs the cell.
"""

import logging
import threading
from collections.abc import Callable
from time import thread_time
from typing import Final

log = logging.getLogger("devtrace")

PERIOD: Final = 0.125
"""Seconds between two rounds of messages, for each panel that listens: together they send at most eight a second."""

REST: Final = 100
"""After reading the counters the feed waits this many times as long as the reading took: reading keeps the interpreter
from the cell that runs, and a view may cost a hundredth of the cell's time. It takes 1 to 5 ms, so that this matters on
a slow machine only."""


class Feed:
    """Calls `send` soon after `wake`, and every `pace()` seconds unless that is None; never twice within a period.

    `send` returns how many messages it sent. Where it fails, that is logged once, and the next change calls it again.
    """

    def __init__(self, send: Callable[[], int], pace: Callable[[], float | None]) -> None:
        self._send = send
        self._pace = pace
        self._changed = threading.Condition()
        self._pending = False
        self._ended = False
        self._rest = 0.0
        self._fault = ""
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        with self._changed:
            self._pending = True
            if self._thread is None and not self._ended:
                self._thread = threading.Thread(target=self._run, name="devtrace-feed", daemon=True)
                self._thread.start()
            self._changed.notify()

    def close(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify()

    def _run(self) -> None:
        while self._wait():
            begin = thread_time()
            sent = self._send_or_log()
            self._rest = REST * (thread_time() - begin)
            with self._changed:
                self._changed.wait_for(lambda: self._ended, PERIOD * max(sent, 1))

    def _send_or_log(self) -> int:
        try:
            return self._send()
        except Exception as error:  # noqa: BLE001 (a fault of ours costs a message, nothing else)
            fault, fault_before = f"{type(error).__name__}: {error}", self._fault
            if fault != fault_before:
                self._fault = fault
                log.warning("a message to the page was not sent: %s", fault)
            return 1

    def _wait(self) -> bool:
        with self._changed:
            while not self._ended and not self._pending:
                pace = self._pace()
                woken = self._changed.wait(pace if pace is None else max(pace, self._rest))
                if not woken and self._pace() is not None:
                    break
            self._pending = False
            return not self._ended
