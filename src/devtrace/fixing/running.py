"""A process that runs a program: paths of files go in, lines of JSON come out."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from typing import IO

from devtrace.runtime.rank import ENDING


@dataclass(frozen=True)
class Running:
    """A process that runs a program; `end` kills it with all that it has started, and waits for it."""

    pid: int
    asks: IO[str]
    answers: IO[str]
    end: Callable[[], None]

    def terminate(self) -> None:
        """Let what runs there end by SIGTERM."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGTERM)

    def close(self) -> None:
        """End it; what was asked of a process that is gone stays unread."""
        self.end()
        with suppress(BrokenPipeError):
            self.answers.close()
            self.asks.close()

    def ask(self, path: str) -> None:
        self.asks.write(f"{path}\n")
        self.asks.flush()


def launch(command: Sequence[str], variables: Mapping[str, str], cwd: str | None = None) -> Running:
    """Start a process in a group of its own, where what the program starts is, too: a DataLoader's workers."""
    for signal_number in ENDING:  # the new group gets none of them: an exit lets this process end it
        if signal.getsignal(signal_number) is signal.SIG_DFL and threading.current_thread() is threading.main_thread():
            signal.signal(signal_number, lambda number, _: sys.exit(128 + number))
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, env=variables, stdin=pipe, stdout=pipe, cwd=cwd, start_new_session=True)
    assert process.stdin is not None
    assert process.stdout is not None
    asks, answers = TextIOWrapper(process.stdin), TextIOWrapper(process.stdout)
    return Running(process.pid, asks, answers, partial(_end_group, process))


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL) if hasattr(os, "killpg") else process.kill()
    process.wait()


def running_fork(pid: int, asks: IO[str], answers: IO[str]) -> Running:
    """Return a fork of this process, which begins a group of its own."""

    def end() -> None:
        with suppress(ProcessLookupError, PermissionError):
            (os.killpg if os.getpgid(pid) == pid else os.kill)(pid, signal.SIGKILL)
        with suppress(ChildProcessError):  # the program has waited for it
            os.waitpid(pid, 0)

    return Running(pid, asks, answers, end)
