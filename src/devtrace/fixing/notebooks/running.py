"""A process that runs a job or a notebook's cells: lines of JSON go in and come out."""

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

from devtrace.fixing.program import kill_group


@dataclass(frozen=True)
class Running:
    """`kill` ends it with all that it has started; `wait` returns its exit code."""

    asks: IO[str] | None
    answers: IO[str]
    kill: Callable[[], None]
    wait: Callable[[], int]

    def close(self) -> None:
        """Close both streams; what was asked of a process that is gone stays unread."""
        with suppress(BrokenPipeError):
            self.answers.close()
            if self.asks is not None:
                self.asks.close()

    def ask(self, what: Any) -> None:
        assert self.asks is not None
        self.asks.write(json.dumps(what) + "\n")
        self.asks.flush()


def of_process(process: subprocess.Popen[bytes]) -> Running:
    """Return a process that began a group of its own, to be ended with all of that."""
    assert process.stdin is not None
    assert process.stdout is not None
    asks, answers = TextIOWrapper(process.stdin), TextIOWrapper(process.stdout)
    return Running(asks, answers, partial(kill_group, process), process.wait)


def of_fork(pid: int, asks: IO[str] | None, answers: IO[str]) -> Running:
    """Return a fork of this process, which may have begun a group."""

    def kill() -> None:
        with suppress(ProcessLookupError, PermissionError):
            (os.killpg if os.getpgid(pid) == pid else os.kill)(pid, signal.SIGKILL)

    def wait() -> int:
        with suppress(ChildProcessError):  # the program has waited for it, or somebody has before
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return 0

    return Running(asks, answers, kill, wait)
