"""Who watches this process, told by what simulates devices: one list, so that neither side imports the other.

class Recorder(Observer):
    def settle_device(self, tensor): ...
observers.append(recorder)
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from typing import Any, Final


class Observer:
    """One that is told; it overrides what it wants to know."""

    def settle_device(self, tensor: Any) -> None:
        """Take the device of a tensor that is known only after its op: `torch.FloatTensor(2, 3)` of a simulated one."""


observers: Final[list[Observer]] = []
_last_actions: list[tuple[int, Callable[[], None]]] = []


def do_last(action: Callable[[], None]) -> None:
    """Do something once as this process ends, after all that the program registered; a fork of it does not."""
    if (asked := (os.getpid(), action)) not in _last_actions:
        _last_actions.append(asked)


def _do_all() -> None:
    for process, action in _last_actions:
        if process == os.getpid():
            action()


atexit.register(_do_all)  # what is registered first runs last: who imports this before registering is done before it
