"""What lives on a device, as a simulation of it knows; a real device knows its sums alone."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple


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
