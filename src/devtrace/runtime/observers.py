"""Who watches this process, told by what simulates devices: one list, so that neither side imports the other.

class Recorder(Observer):
    def settle_device(self, tensor): ...
observers.append(recorder)
watching.append(heights)                # is told of each block of memory
"""

import atexit
import os
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, Protocol


class Observer:
    """One that is told; it overrides what it wants to know."""

    def settle_device(self, tensor: Any) -> None:
        """Take the device of a tensor that is known only after its op: `torch.FloatTensor(2, 3)` of a simulated one."""


observers: Final[list[Observer]] = []
_last_actions: list[tuple[int, Callable[[], None]]] = []


def do_last(action: Callable[[], None]) -> None:
    """Do something once as this process ends, after all that the program registered; a fork of it does not."""
    if (entry := (os.getpid(), action)) not in _last_actions:
        _last_actions.append(entry)


def _do_all() -> None:
    for process, action in _last_actions:
        if process == os.getpid():
            action()


atexit.register(_do_all)  # what is registered first runs last: who imports this before registering is done before it


# What lives on a device, as a simulation of it knows; a real device knows its sums alone.


class Alive(NamedTuple):
    """A device's memory where an allocation failed: `storages` with their bytes there, looked up as one goes through
    them, once; `asked` is the tensor's size."""

    device: Any
    asked: int
    limit: int
    reserved: int
    allocated: int
    storages: Iterable[tuple[Any, int]]
    highest: int = 0


knowing: Final[list[Callable[[Any], Alive | None]]] = []
"""Each answers for the devices that it simulates."""


class AllocationWatch(Protocol):
    """One that is told of each block that a simulated device gives, and when it has given more than a mark.

    Of each block `log` gets LOG_FIELDS: the moment, what has the block, its bytes (GIVEN_BACK: it ends), the device's
    index. A block also ends where its owner takes another. `marks` are by device, LEAST where there is none.
    """

    marks: dict[Any, int]
    log: list[int]

    def pack(self) -> None:
        """Make room in the log, which has LOG_FULL numbers."""

    def look_above(self, device: Any, allocated: int) -> None:
        """Look at what there is, and set the mark of the device higher."""


LEAST: Final = 2 << 20
"""A device that never held so much has no curve, and nobody looks at who holds it."""
LOG_FIELDS: Final = 4
LOG_FULL: Final = LOG_FIELDS << 14
GIVEN_BACK: Final = -1
watching: Final[list[AllocationWatch]] = []
existing: Final[list[Callable[[], Iterable[tuple[int, int, int]]]]] = []
"""Each yields what has a block of its devices now: the owner's number, the bytes, the device's index."""
