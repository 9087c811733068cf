"""What is done when a program has ended: after what it registered to be done then, and after its report is written."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable

_actions: list[tuple[int, Callable[[], None]]] = []


def do_last(action: Callable[[], None]) -> None:
    """Do something once as this process ends; a fork of it does not."""
    if (asked := (os.getpid(), action)) not in _actions:
        _actions.append(asked)


def _do_all() -> None:
    for process, action in _actions:
        if process == os.getpid():
            action()


atexit.register(_do_all)  # what is registered first runs last: who imports this before registering is done before it
