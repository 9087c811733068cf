"""A device's memory over a trace: what held how much of it, at the moments at which there was most."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Sizes = npt.NDArray[np.int32] | npt.NDArray[np.int64]

KINDS: Final = ("parameter", "buffer", "optimizer-state", "gradient", "named", "activation", "temporary")
"""What memory is for, from the bottom of a picture up: what stays the longest first."""

ENDLESS: Final = np.iinfo(np.int64).max


class Lives(NamedTuple):
    """Pieces of memory: `begin` and `end` order all that happens, ENDLESS: never; before op 0 is -1."""

    begin: Sizes
    end: Sizes
    begin_op: Sizes
    end_op: Sizes
    bytes: Sizes
    device: Sizes
    tensor: Sizes

    def happenings(self) -> tuple[Sizes, npt.NDArray[np.bool_]]:
        """Return, for each begin and end in their order, the index of the piece and whether it is a begin."""
        with_end = np.flatnonzero(self.end < ENDLESS)
        order = np.argsort(np.concatenate([self.begin, self.end[with_end]]), kind="stable")
        return np.concatenate([np.arange(len(self.begin)), with_end])[order], order < len(self.begin)


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Bytes of one kind and of one name at each point of the curve."""

    kind: str
    name: str
    bytes: Sizes


@dataclass(frozen=True, eq=False)
class Curve:
    """A device's memory; `limit` 0: nobody knows it. `is_exact`: until release, else until the last use at least."""

    device: str
    limit: int
    is_exact: bool
    ops: Sizes
    parts: tuple[Part, ...]

    @cached_property
    def total(self) -> Sizes:
        return _sum([part.bytes for part in self.parts])

    @property
    def peak(self) -> int:
        """Return the point at which there is most."""
        return int(self.total.argmax())

    @property
    def kinds(self) -> Iterator[tuple[str, Sizes]]:
        """Yield each kind that has anything, with its bytes at each point."""
        for kind in KINDS:
            sizes = [part.bytes for part in self.parts if part.kind == kind]
            if sizes:
                yield kind, _sum(sizes)

    def at_peak(self) -> list[tuple[Part, int]]:
        """Return the parts with their bytes at the peak, the largest first."""
        sizes = [(part, int(part.bytes[self.peak])) for part in self.parts]
        return sorted(((part, size) for part, size in sizes if size), key=lambda part_and_size: -part_and_size[1])


def _sum(sizes: list[Sizes]) -> Sizes:
    total: Sizes = np.stack(sizes).sum(axis=0, dtype=np.int64)
    return total
