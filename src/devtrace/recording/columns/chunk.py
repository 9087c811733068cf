"""Ops as columns, made from the lists of a thread when they are full."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

WIDTH: Final = 7
FULL: Final = 4096 * WIDTH

# The head of an op, from its lowest bit: 5 flags, 20 bits for the number of inputs, 12 bits for the class of the
# autograd node, and above them the operator's id.
BACKWARD: Final = 1
OPTIMIZER: Final = 2
GRAD: Final = 4
GRAD_SHIFT: Final = 2
SEVERAL: Final = 8
MASK: Final = 16
COUNT_SHIFT: Final = 5
NODE_SHIFT: Final = 25
OPERATOR_SHIFT: Final = 37
NODES: Final = 1 << OPERATOR_SHIFT - NODE_SHIFT
COUNTS: Final = 1 << NODE_SHIFT - COUNT_SHIFT

Array = npt.NDArray[Any]
_SMALL = np.int32


@dataclass(frozen=True, slots=True)
class Chunk:
    """Ops of one thread, in order.

    `number` counts the thread's ops from 0, with gaps where some were folded away. `times` is the number of ops that a
    row counts for. `duration` is -1 for an op that raised, `sequence` autograd's number or -1. `flat` holds the rows of
    each op's inputs and, if it has SEVERAL, of its outputs: as many as `layout` says. Else the one output is `row`, and
    `layout` is that of a new row, -1 if the row is known.
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
    def of(cls, heads: list[int], flat: list[int], first: int) -> Self:
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
    def join(cls, chunks: Sequence[Self]) -> Self:
        if not chunks:
            return cls.of([], [], 0)
        return cls(*(np.concatenate([getattr(chunk, field.name) for chunk in chunks]) for field in fields(cls)))

    def __len__(self) -> int:
        return len(self.head)

    @property
    def operator(self) -> Array:
        return self.head >> OPERATOR_SHIFT

    @property
    def several(self) -> Array:
        return (self.head & SEVERAL) > 0

    @property
    def input_count(self) -> Array:
        return (self.head >> COUNT_SHIFT) & (COUNTS - 1)

    @property
    def output_count(self) -> Array:
        """Outputs of each op that are in `flat`."""
        return np.where(self.several, self.layout, 0)

    @property
    def adds_row(self) -> Array:
        """True for ops whose head is the only record of a new row."""
        return ~self.several & (self.layout >= 0)

    def begins(self) -> Array:
        """Return the index in `flat` at which each op's rows begin."""
        sizes = self.input_count + self.output_count
        begins: Array = np.cumsum(sizes) - sizes
        return begins

    def first_rows(self) -> Array:
        """Return the row whose device each op ran on: its first output, else its first input, else -1."""
        inputs, outputs = self.input_count, self.output_count
        indexes = self.begins() + np.where(outputs > 0, inputs, 0)
        rows_in_flat = np.append(self.flat, -1)[np.where(inputs + outputs > 0, indexes, len(self.flat))]
        rows: Array = np.where(self.row >= 0, self.row, rows_in_flat)
        return rows

    def last_inputs(self) -> Array:
        """Return each op's last input (-1: none), the source of a copy in place."""
        indexes = self.begins() + self.input_count - 1
        last: Array = np.append(self.flat, -1)[np.where(self.input_count > 0, indexes, len(self.flat))]
        return last

    def select(self, marked: Array, times: Array) -> Self:
        """Return the marked ops; `times` says for how many ops each of them counts from now on."""
        sizes = self.input_count + self.output_count
        columns = {field.name: getattr(self, field.name)[marked] for field in fields(self) if field.name != "flat"}
        columns["times"] = times.astype(_SMALL)
        flat = self.flat[np.repeat(marked, sizes)]
        return type(self)(**columns, flat=flat)
