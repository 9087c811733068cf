"""Ops as columns: what the lists of a thread become when they are full."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

WIDTH: Final = 7
FULL: Final = 4096 * WIDTH

# The five low bits of a head, then the number of inputs, then the class of the autograd node, then the plan.
BACKWARD: Final = 1
OPTIMIZER: Final = 2
GRAD: Final = 4
GRAD_SHIFT: Final = 2
SEVERAL: Final = 8
MASK: Final = 16
COUNT_SHIFT: Final = 5
NODE_SHIFT: Final = 25
PLAN_SHIFT: Final = 37
NODES: Final = 1 << PLAN_SHIFT - NODE_SHIFT
COUNTS: Final = 1 << NODE_SHIFT - COUNT_SHIFT

Array = npt.NDArray[Any]
_SMALL = np.int32


@dataclass(frozen=True, slots=True)
class Chunk:
    """Ops of one thread, in order.

    `number` counts the thread's ops from 0, with gaps where some were folded away; `times` is how many ops a row
    stands for. `duration` is -1 for an op that raised, `sequence` autograd's number or -1. `flat` holds the rows of
    all inputs, each op's followed by those of its outputs if it has SEVERAL, `layout` of them. An only output is
    `row`, of the given `layout` if the row is new (else -1).
    """

    number: Array
    times: Array
    head: Array
    site: Array
    start: Array
    duration: Array
    sequence: Array
    row: Array
    layout: Array
    flat: Array

    @classmethod
    def of(cls, heads: list[int], flat: list[int], first: int) -> Chunk:
        table = np.array(heads, dtype=np.int64).reshape(-1, WIDTH)
        head, site, start, end, sequence, row, layout = (table[:, column] for column in range(WIDTH))
        return cls(
            number=np.arange(first, first + len(table)),
            times=np.ones(len(table), dtype=_SMALL),
            head=head.copy(),
            site=site.astype(_SMALL),
            start=start.copy(),
            duration=np.where(end < 0, -1, end - start),
            sequence=sequence.astype(_SMALL),
            row=row.astype(_SMALL),
            layout=layout.astype(_SMALL),
            flat=np.array(flat, dtype=_SMALL),
        )

    @classmethod
    def join(cls, chunks: Sequence[Chunk]) -> Chunk:
        if not chunks:
            return cls.of([], [], 0)
        return cls(*(np.concatenate([getattr(chunk, field.name) for chunk in chunks]) for field in fields(cls)))

    def __len__(self) -> int:
        return len(self.head)

    @property
    def plan(self) -> Array:
        return self.head >> PLAN_SHIFT

    @property
    def several(self) -> Array:
        return (self.head & SEVERAL) > 0

    @property
    def taken(self) -> Array:
        """How many inputs each op has."""
        return (self.head >> COUNT_SHIFT) & (COUNTS - 1)

    @property
    def given(self) -> Array:
        """How many outputs of each op are in `flat`."""
        return np.where(self.several, self.layout, 0)

    @property
    def new(self) -> Array:
        """Which ops made a row that only their head tells of."""
        return ~self.several & (self.layout >= 0)

    def begins(self) -> Array:
        """Where in `flat` each op's rows begin."""
        sizes = self.taken + self.given
        begins: Array = np.cumsum(sizes) - sizes
        return begins

    def first_rows(self) -> Array:
        """A row that says where each op ran: its first output, else its first input, else -1."""
        taken, given = self.taken, self.given
        at = self.begins() + np.where(given > 0, taken, 0)
        listed = np.append(self.flat, -1)[np.where(taken + given > 0, at, len(self.flat))]
        rows: Array = np.where(self.row >= 0, self.row, listed)
        return rows

    def last_inputs(self) -> Array:
        """Each op's last input, -1 for none: what a copy in place is from."""
        at = self.begins() + self.taken - 1
        last: Array = np.append(self.flat, -1)[np.where(self.taken > 0, at, len(self.flat))]
        return last

    def select(self, kept: Array, times: Array) -> Chunk:
        """Some of the ops, each standing for so many."""
        sizes = self.taken + self.given
        columns = {field.name: getattr(self, field.name)[kept] for field in fields(self) if field.name != "flat"}
        columns["times"] = times.astype(_SMALL)
        flat = self.flat[np.repeat(kept, sizes)]
        return Chunk(**columns, flat=flat)
