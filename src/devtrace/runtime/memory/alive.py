"""What lives on a device, as a simulation of it knows; a real device knows its sums alone."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol


class Alive(NamedTuple):
    """A device's memory where an allocation failed: `storages` with their bytes there, `asked` is the tensor's size."""

    device: Any
    asked: int
    limit: int
    reserved: int
    allocated: int
    storages: list[tuple[Any, int]]


knowing: Final[list[Callable[[Any], Alive | None]]] = []
"""Each answers for the devices that it simulates."""


class Heights(Protocol):
    """One that is told when a simulated device's memory is higher than its mark, by default LEAST."""

    marks: dict[Any, int]

    def passed(self, device: Any, allocated: int) -> None:
        """Look at what there is, and set the mark of the device higher."""


LEAST: Final = 2 << 20
watching: Final[list[Heights]] = []
