"""The trace: what was recorded, as immutable columns, with row views made on demand.

    trace.ops[-1].site.line            rows follow references
    trace.ops.column("device")         columns are numpy arrays of row ids

Recording fills a trace, diagnosis and every view read it, and nothing else passes between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

import numpy as np
import numpy.typing as npt

from devtrace.trace.columns import TABLES, Column

Ints = npt.NDArray[np.int32] | npt.NDArray[np.int64]
RowT = TypeVar("RowT")


@dataclass(frozen=True, slots=True)
class Lists:
    """A column of lists: row i holds flat[offsets[i]:offsets[i + 1]]."""

    offsets: Ints
    flat: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> Ints:
        return self.flat[self.offsets[row] : self.offsets[row + 1]]


Values = Ints | Lists


class Device(str):
    """A device by name, equal to it as a string: op.device == "cuda:0"."""

    __slots__ = ("id", "simulated")
    id: int
    simulated: bool

    @property
    def name(self) -> str:
        return str(self)


class Shape(tuple[int, ...]):
    """A tensor's shape, equal to the tuple of its dimensions."""

    __slots__ = ()

    @property
    def dims(self) -> tuple[int, ...]:
        return tuple(self)


class Row:
    """One row, reading its fields from the columns when asked. Rows of one trace are equal when table and id are."""

    __slots__ = ("_table", "id")

    def __init__(self, table: Table[Any], id: int) -> None:
        self._table = table
        self.id = id

    def __getattr__(self, name: str) -> Any:
        return self._table.value(name, self.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row) and self._table is other._table and self.id == other.id

    def __hash__(self) -> int:
        return hash((self._table.name, self.id))

    def __repr__(self) -> str:
        values = ", ".join(f"{column.name}={self._table.raw(column.name, self.id)!r}" for column in self._table.columns)
        return f"<{self._table.name}[{self.id}] {values}>"


class Site(Row):
    __slots__ = ()
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str
    text: str
    cell_id: str
    package: str
    caller: Site | None

    @property
    def cell(self) -> int | None:
        count = self._table.number("cell", self.id)
        return None if count < 0 else count

    def __str__(self) -> str:
        where = self.file.rsplit("/", 1)[-1] if self.cell is None else f"In[{self.cell}]"
        return f"{where} line {self.line}"


class Module(Row):
    __slots__ = ()
    path: str
    type: str
    parent: Module | None
    site: Site | None
    op: int
    ran: int


class Thread(Row):
    __slots__ = ()
    name: str
    rank: int


class Call(Row):
    __slots__ = ()
    module: Module
    parent: Call | None
    begin: int
    end: int
    thread: Thread
    training: int


class Tensor(Row):
    __slots__ = ()
    device: Device
    dtype: str
    shape: Shape
    bytes: int
    producer: Op | None
    role: str
    name: str
    source: Tensor | None

    @property
    def site(self) -> Site | None:
        """Where it was born: its own site, else its producer's."""
        own = cast("Site | None", self._table.value("site", self.id))
        return own or (self.producer.site if self.producer else None)


class Op(Row):
    __slots__ = ()
    name: str
    start: int
    duration: int
    device: Device | None
    kind: str
    phase: str
    call: Call | None
    site: Site | None
    thread: Thread
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    forward: Op | None
    grad: int

    @property
    def module(self) -> Module | None:
        return self.call.module if self.call else None


class Copy(Row):
    __slots__ = ()
    op: Op
    to: Device
    bytes: int
    pinned: int
    non_blocking: int

    @property
    def from_(self) -> Device:
        return cast(Device, self._table.value("from", self.id))


class Move(Row):
    __slots__ = ()
    module: Module
    site: Site | None
    op: int
    device: Device | None
    tensors: int


class Failure(Row):
    __slots__ = ()
    op: Op
    type: str
    message: str


class Source(Row):
    __slots__ = ()
    file: str
    text: str
    line: int
    cell: int
    cell_id: str


class LedgerRow(Row):
    __slots__ = ()
    site: Site
    ops: tuple[int, ...]
    h2d: int
    d2h: int
    d2d: int
    syncs: int
    cpu_compute: int
    bytes: int


def _device(table: Table[Any], id: int) -> Device:
    device = Device(table.value("name", id))
    device.id, device.simulated = id, bool(table.number("simulated", id))
    return device


def _shape(table: Table[Any], id: int) -> Shape:
    return Shape(table.value("dims", id))


ROW_TYPES: dict[str, Any] = {
    "devices": _device,
    "sites": Site,
    "sources": Source,
    "shapes": _shape,
    "modules": Module,
    "calls": Call,
    "tensors": Tensor,
    "threads": Thread,
    "ops": Op,
    "copies": Copy,
    "moves": Move,
    "errors": Failure,
    "ledger": LedgerRow,
}


class Table(Sequence[RowT], Generic[RowT]):
    """One table of a trace: len(), [i], iteration over rows, and its columns as arrays."""

    def __init__(self, trace: TraceData, name: str, values: Mapping[str, Values]) -> None:
        self.trace = trace
        self.name = name
        self.columns = TABLES[name]
        self._values = dict(values)
        self._kinds = {column.name: column for column in self.columns}
        self._length = len(next(iter(self._values.values())))

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, id: Any) -> Any:
        if isinstance(id, slice):
            return [self[i] for i in range(*id.indices(self._length))]
        if not -self._length <= id < self._length:
            raise IndexError(f"{self.name} has {self._length} rows, not {id}")
        return ROW_TYPES[self.name](self, int(id) % self._length)

    def __iter__(self) -> Iterator[RowT]:
        return (self[i] for i in range(self._length))

    def column(self, name: str) -> Values:
        """The whole column: row ids for references, indexes into `trace.strings` for text."""
        return self._values[name]

    def ints(self, name: str) -> Ints:
        """A column that is not of lists."""
        return cast(Ints, self._values[name])

    def lists(self, name: str) -> Lists:
        """A column of lists."""
        return cast(Lists, self._values[name])

    def number(self, name: str, id: int) -> int:
        return int(self.ints(name)[id])

    def raw(self, name: str, id: int) -> Any:
        """The field as stored, with text resolved: what a dump shows."""
        column, values = self._kinds[name], self._values[name]
        if isinstance(values, Lists):
            return tuple(values[id].tolist())
        return self.trace.strings[values[id]] if column.kind == "text" else int(values[id])

    def value(self, name: str, id: int) -> Any:
        """The field with references followed; a missing reference is None."""
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


@dataclass(frozen=True, eq=False)
class TraceData:
    """All that one recording saw. Made by a TraceBuilder or read from a file; never changed after."""

    strings: tuple[str, ...]
    values: Mapping[str, Mapping[str, Values]]
    title: str = ""
    recorded: str = ""
    producer: str = ""
    truncated: int = 0
    notes: tuple[str, ...] = ()
    findings: tuple[Mapping[str, Any], ...] | None = None
    _tables: dict[str, Table[Any]] = field(default_factory=dict, repr=False, init=False)

    def string_id(self, text: str) -> int:
        """Return the index of a text among the strings; -1 for a text that the trace does not contain."""
        return self.strings.index(text) if text in self.strings else -1

    def table(self, name: str) -> Table[Any]:
        if name not in self._tables:
            self._tables[name] = Table(self, name, self.values[name])
        return self._tables[name]

    @property
    def ops(self) -> Table[Op]:
        return self.table("ops")

    @property
    def devices(self) -> Table[Device]:
        return self.table("devices")

    @property
    def sites(self) -> Table[Site]:
        return self.table("sites")

    @property
    def sources(self) -> Table[Source]:
        return self.table("sources")

    @property
    def shapes(self) -> Table[Shape]:
        return self.table("shapes")

    @property
    def modules(self) -> Table[Module]:
        return self.table("modules")

    @property
    def calls(self) -> Table[Call]:
        return self.table("calls")

    @property
    def tensors(self) -> Table[Tensor]:
        return self.table("tensors")

    @property
    def threads(self) -> Table[Thread]:
        return self.table("threads")

    @property
    def copies(self) -> Table[Copy]:
        return self.table("copies")

    @property
    def moves(self) -> Table[Move]:
        return self.table("moves")

    @property
    def errors(self) -> Table[Failure]:
        return self.table("errors")

    @property
    def ledger(self) -> Table[LedgerRow]:
        return self.table("ledger")
