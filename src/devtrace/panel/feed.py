"""The thread that tells the panels what changed: many changes become one message, and at most eight a second leave.

It sleeps until something changed; while a cell is traced and somebody looks, it looks at the recording's counters from
time to time. It touches nothing in the thread that runs the cell.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

log = logging.getLogger("devtrace")

PERIOD: Final = 0.125
"""Seconds between two rounds of messages, for each panel that listens: together they send at most eight a second."""


class Feed:
    """Calls `send` soon after `wake`, and every `pace()` seconds unless that is None; never twice within a period.

    `send` returns how many messages it sent.
    """

    def __init__(self, send: Callable[[], int], pace: Callable[[], float | None]) -> None:
        self._send = send
        self._pace = pace
        self._changed = threading.Condition()
        self._pending = False
        self._ended = False
        self._thread: threading.Thread | None = None

    def wake(self) -> None:
        """Something changed."""
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
            try:
                sent = self._send()
            except Exception as fault:  # noqa: BLE001 (a fault of ours ends the feed, nothing else)
                log.warning("the sidebar's feed ended: %s: %s", type(fault).__name__, fault)
                return
            with self._changed:
                self._changed.wait_for(lambda: self._ended, PERIOD * max(sent, 1))

    def _wait(self) -> bool:
        with self._changed:
            while not self._ended and not self._pending:
                woken = self._changed.wait(self._pace())
                if not woken and self._pace() is not None:
                    break
            self._pending = False
            return not self._ended
