"""The trace: immutable columns, with views of rows made on demand.

    trace.ops[-1].site.line            rows follow references
    trace.ops.column("device")         columns are numpy arrays of row ids

Recording fills a trace, diagnosis and every view read it, and nothing else passes between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt

from devtrace.trace import rows
from devtrace.trace.columns import TABLES, Column
from devtrace.trace.curve import Curve

Ints = npt.NDArray[np.int32] | npt.NDArray[np.int64]
RowT = TypeVar("RowT")

ROWS_AT_ONCE: Final = 1 << 18
"""Lists are gathered so many at a time: where each value is takes more room than the values."""


@dataclass(frozen=True, slots=True)
class Lists:
    """A column of lists: row i is flat[offsets[i]:offsets[i + 1]]."""

    offsets: Ints
    flat: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> Ints:
        return self.flat[self.offsets[row] : self.offsets[row + 1]]

    @classmethod
    def of(cls, lengths: Ints, flat: Ints) -> Lists:
        return cls(np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)]), flat)

    @classmethod
    def gather(cls, begins: Ints, lengths: Ints, flat: Ints) -> Lists:
        """Return the lists flat[begin : begin + length]."""
        offsets = cls.of(lengths, flat).offsets
        gathered = np.empty(offsets[-1], flat.dtype)
        for first in range(0, len(lengths), ROWS_AT_ONCE):
            rows = slice(first, first + ROWS_AT_ONCE)
            begin, end = offsets[first], offsets[min(first + ROWS_AT_ONCE, len(lengths))]
            indexes = np.repeat(begins[rows] - offsets[:-1][rows], lengths[rows])
            indexes += np.arange(begin, end, dtype=indexes.dtype)
            gathered[begin:end] = flat[indexes]
        return cls(offsets, gathered)

    @property
    def first(self) -> Ints:
        """Return the first value of each list, -1 for an empty one."""
        begins, ends = self.offsets[:-1], self.offsets[1:]
        return np.append(self.flat, -1)[np.where(ends > begins, begins, len(self.flat))]

    @property
    def lengths(self) -> Ints:
        return cast(Ints, np.diff(self.offsets))

    @property
    def rows(self) -> Ints:
        """Return the row of each value in `flat`."""
        return np.repeat(np.arange(len(self)), self.lengths)

    def have(self, marked: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Return for each list whether one of its values is marked; `marked` is of the values in `flat`."""
        marked_before = np.concatenate([[0], np.cumsum(marked)])
        return marked_before[self.offsets[1:]] > marked_before[self.offsets[:-1]]

    def take(self, rows: Ints) -> Lists:
        """Return some rows, in the order given."""
        return Lists.gather(self.offsets[:-1][rows], self.lengths[rows], self.flat)


Values = Ints | Lists


class Table(Sequence[RowT], Generic[RowT]):
    """One table of a trace: len(), [i], iteration over rows, and its columns as arrays."""

    def __init__(self, trace: TraceData, name: str, values: Mapping[str, Values]) -> None:
        self.trace = trace
        self.name = name
        self.columns = TABLES[name]
        self._values = values
        self._kinds = {column.name: column for column in self.columns}
        self._length = len(next(iter(self._values.values())))

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, id: Any) -> Any:
        if isinstance(id, slice):
            return [self[i] for i in range(*id.indices(self._length))]
        if not -self._length <= id < self._length:
            raise IndexError(f"{self.name} has {self._length} rows, not {id}")
        named: _Named[RowT] = vars(TraceData)[self.name]
        return named.row(self, int(id) % self._length)

    def __iter__(self) -> Iterator[RowT]:
        return (self[i] for i in range(self._length))

    def column(self, name: str) -> Values:
        """Return a whole column: row ids for references, indexes into `trace.strings` for text."""
        return self._values[name]

    def ints(self, name: str) -> Ints:
        return cast(Ints, self._values[name])

    def lists(self, name: str) -> Lists:
        return cast(Lists, self._values[name])

    def number(self, name: str, id: int) -> int:
        return int(self.ints(name)[id])

    def raw(self, name: str, id: int) -> Any:
        """Return a field as stored, with text resolved."""
        column, values = self._kinds[name], self._values[name]
        if isinstance(values, Lists):
            return tuple(values[id].tolist())
        return self.trace.strings[values[id]] if column.kind == "text" else int(values[id])

    def value(self, name: str, id: int) -> Any:
        """Return a field with references followed; a missing reference is None."""
        column = self._kinds.get(name)
        if column is None:
            raise AttributeError(f"a row of {self.name} has no field {name!r}; it has {', '.join(self._kinds)}")
        raw = self.raw(name, id)
        if column.kind == "row":
            return self._follow(column, raw)
        if column.kind == "rows":
            return tuple(self._follow(column, row) for row in raw)
        return raw

    def _follow(self, column: Column, id: int) -> Any:
        return None if id < 0 else self.trace.table(column.table)[id]


class _Named(Generic[RowT]):
    """A table of a trace as an attribute of it; `row` makes its rows."""

    def __init__(self, row: Callable[[Table[RowT], int], RowT]) -> None:
        self.row = row

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, trace: TraceData, owner: type) -> Table[RowT]:
        return trace.table(self.name)


@dataclass(frozen=True, eq=False)
class TraceData:
    """All that one recording saw. A TraceBuilder or a reader makes it; nothing changes it."""

    strings: tuple[str, ...]
    values: Mapping[str, Mapping[str, Values]]
    title: str = ""
    recorded: str = ""
    producer: str = ""
    truncated: int = 0
    notes: tuple[str, ...] = ()
    findings: tuple[Mapping[str, Any], ...] | None = None
    language: str = ""
    """In which the findings were made; "" where there are none."""
    outcome: str = ""
    """"ended", "interrupted", "failed: IndexError: ..."; "" where nobody saw the end."""
    closing: str = ""
    """A sentence on how the program failed, if no finding is about it."""
    memory: tuple[Curve, ...] = ()
    """Of each accelerator that held enough to be looked at."""
    all_clear: bool = False
    """True if it ended, used an accelerator and left nothing of a model elsewhere; findings may say otherwise."""
    _tables: dict[str, Table[Any]] = field(default_factory=dict, repr=False, init=False)

    def string_id(self, text: str) -> int:
        """Return the index of a text in `trace.strings`, or -1 if the trace does not contain the text."""
        return self.strings.index(text) if text in self.strings else -1

    def table(self, name: str) -> Table[Any]:
        if name not in self._tables:
            self._tables[name] = Table(self, name, self.values[name])
        return self._tables[name]

    def forget_tables(self) -> None:
        # The tables built so far would keep columns in memory after the trace is gone.
        self._tables.clear()

    ops = _Named(rows.Op)
    devices = _Named(rows.device)
    sites = _Named(rows.Site)
    sources = _Named(rows.Source)
    shapes = _Named(rows.shape)
    modules = _Named(rows.Module)
    calls = _Named(rows.Call)
    tensors = _Named(rows.Tensor)
    threads = _Named(rows.Thread)
    copies = _Named(rows.Copy)
    autocasts = _Named(rows.Autocast)
    moves = _Named(rows.Move)
    errors = _Named(rows.Failure)
    ledger = _Named(rows.LedgerRow)
