"""Forks of our own, in which a program goes on: what it used on simulated devices serves there as before.

A program's own fork may use none of that, as with CUDA (`simulation/children.py`, `simulation/gradients.py`).
"""

import ctypes
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

CAN_FORK: Final = sys.platform == "linux"
"""Elsewhere what a library has begun in another thread does not outlive a fork."""
_DIE_WITH_PARENT: Final = 1
"""PR_SET_PDEATHSIG."""


class _Line:
    """Process in which this line of our forks began."""

    origin = os.getpid()
    is_ours = False


def fork() -> int:
    """Fork this process; the child ends with it, and computes in one thread."""
    _Line.is_ours = True
    try:
        pid = os.fork()
    finally:
        _Line.is_ours = False
    if not pid:
        end_with_parent()
        if "torch" in sys.modules:
            sys.modules["torch"].set_num_threads(1)  # OpenMP's other threads are not here, and would be waited for
    return pid


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
