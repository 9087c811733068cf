"""Forks of our own, in which a program goes on: what it used on simulated devices serves there as before.

A program's own fork may use none of that, as with CUDA (`simulation/children.py`, `simulation/gradients.py`).
"""

import ctypes
import os
import random
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

CAN_FORK: Final = sys.platform == "linux"
"""Elsewhere what a library has begun in another thread does not outlive a fork."""
_DIE_WITH_PARENT: Final = 1
"""PR_SET_PDEATHSIG."""
_OPENMP: Final = re.compile(r"/lib[gi]?omp\d?[.-]")
_HARD: Final = 2
"""omp_pause_hard."""


class _Line:
    """Process in which this line of our forks began."""

    origin = os.getpid()
    is_ours = False


def fork() -> int:
    """Fork this process; the child ends with it, and draws the random numbers that it would have drawn."""
    random_state, have_ended = random.getstate(), _end_threads_of_openmp()
    _Line.is_ours = True
    try:
        pid = os.fork()
    finally:
        _Line.is_ours = False
    if not pid:
        end_with_parent()
        random.setstate(random_state)  # Python draws a new seed in a fork
        if "torch" in sys.modules and not have_ended:
            sys.modules["torch"].set_num_threads(1)
    return pid


def _end_threads_of_openmp() -> bool:
    """Let each OpenMP end its threads, which a fork would wait for and has not; it begins new ones when it needs them.

    Return whether there is one, and all did.
    """
    with open("/proc/self/maps") as maps:
        libraries = {line.split(maxsplit=5)[5].strip() for line in maps if _OPENMP.search(line)}
    try:
        failures = [ctypes.CDLL(path).omp_pause_resource_all(_HARD) for path in libraries]
    except (OSError, AttributeError):  # a file that is gone, a library that is older than this function
        return False
    return bool(failures) and not any(failures)


def could_go_on() -> bool:
    """Return whether a fork could go on as this process would: it has no child, shares no memory and has one thread.

    Libraries that know of forks end their threads at one.
    """
    with suppress(ChildProcessError):
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return False
    with open("/proc/self/maps") as maps:
        if any(" rw-s " in line and "/sem." not in line for line in maps):  # a lock is free between two statements
            return False
    _end_threads_of_openmp()
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    return len(os.listdir("/proc/self/task")) == 1


def end_with_parent() -> None:
    """Let the system end this process when the one that started it is gone, where the system can."""
    if CAN_FORK:
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


@contextmanager
def to_its_end() -> Iterator[None]:
    """Let a fork do this and no more, whatever comes: nothing of its parent goes on in it."""
    try:
        yield
    finally:
        os._exit(0)


def is_ours() -> bool:
    """Return whether the fork that is just being made is one of ours."""
    return _Line.is_ours


def origin() -> int:
    """Return the process that this one goes on for: itself, where no fork of ours is between."""
    return _Line.origin


def _begin_a_line() -> None:
    if not _Line.is_ours:
        _Line.origin = os.getpid()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_a_line)
