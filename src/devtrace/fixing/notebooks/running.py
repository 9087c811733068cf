"""A process that runs a notebook's cells: lines of JSON go in and come out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from typing import IO, Any

from devtrace.fixing.program import end_group


@dataclass(frozen=True)
class Running:
    """`end` kills it with all that it has started, and waits for it."""

    asks: IO[str]
    answers: IO[str]
    end: Callable[[], None]

    def close(self) -> None:
        """End it; what was asked of a process that is gone stays unread."""
        self.end()
        with suppress(BrokenPipeError):
            self.answers.close()
            self.asks.close()

    def ask(self, what: Any) -> None:
        self.asks.write(json.dumps(what) + "\n")
        self.asks.flush()


def of_process(process: subprocess.Popen[bytes]) -> Running:
    """Return a process that began a group of its own, to be ended with all of that."""
    assert process.stdin is not None
    assert process.stdout is not None
    return Running(TextIOWrapper(process.stdin), TextIOWrapper(process.stdout), partial(end_group, process))


def of_fork(pid: int, asks: IO[str], answers: IO[str]) -> Running:
    """Return a fork of this process, which begins a group of its own."""

    def end() -> None:
        with suppress(ProcessLookupError, PermissionError):
            (os.killpg if os.getpgid(pid) == pid else os.kill)(pid, signal.SIGKILL)
        with suppress(ChildProcessError):  # the program has waited for it
            os.waitpid(pid, 0)

    return Running(asks, answers, end)
