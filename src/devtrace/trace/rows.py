"""Views of rows: their fields are read from the columns of a table when asked, references are followed.

op.inputs[0].device == "cuda:0"
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar, cast

from devtrace.trace.ids import CallId, ModuleId, OpId, SiteId, TensorId
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import file_label

IdT = TypeVar("IdT", bound=int)


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


class Row(Generic[IdT]):
    """One row, reading its fields from the columns when asked. Rows of one trace are equal when table and id are."""

    __slots__ = ("_table", "id")

    def __init__(self, table: Any, id: Any) -> None:
        self._table = table
        self.id: IdT = id

    def __getattr__(self, name: str) -> Any:
        return self._table.value(name, self.id)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Row) and self._table is other._table and self.id == other.id

    def __hash__(self) -> int:
        return hash((self._table.name, self.id))

    def __repr__(self) -> str:
        values = ", ".join(f"{column.name}={self._table.raw(column.name, self.id)!r}" for column in self._table.columns)
        return f"<{self._table.name}[{self.id}] {values}>"


def site_label(file: str, line: int, cell: int | None = None) -> str:
    return sentence("site", name=file_label(file) if cell is None else f"In[{cell}]", line=line)


class Site(Row[SiteId]):
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
        return site_label(self.file, self.line, self.cell)


class Module(Row[ModuleId]):
    path: str
    type: str
    parent: Module | None
    site: Site | None
    op: OpId
    ran: int


class Thread(Row[int]):
    name: str
    rank: int


class Call(Row[CallId]):
    module: Module
    parent: Call | None
    begin: int
    end: int
    thread: Thread
    training: int


class Tensor(Row[TensorId]):
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
        """Return the tensor's own site, else its producer's."""
        own = cast("Site | None", self._table.value("site", self.id))
        return own or (self.producer.site if self.producer else None)


class Op(Row[OpId]):
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


class Copy(Row[int]):
    op: Op
    to: Device
    bytes: int
    pinned: int
    non_blocking: int
    source: Tensor | None

    @property
    def from_(self) -> Device:
        return cast(Device, self._table.value("from", self.id))


class Autocast(Row[int]):
    thread: Thread
    begin: int
    end: int
    device: str
    dtype: str
    enabled: int
    site: Site | None
    left: Site | None


class Move(Row[int]):
    module: Module
    site: Site | None
    op: OpId
    device: Device | None
    tensors: int


class Failure(Row[int]):
    op: Op
    type: str
    message: str


class Source(Row[int]):
    file: str
    text: str
    line: int
    cell: int
    cell_id: str


class LedgerRow(Row[int]):
    site: Site
    ops: tuple[int, ...]
    h2d: int
    d2h: int
    d2d: int
    syncs: int
    cpu_compute: int
    bytes: int


def device(table: Any, id: int) -> Device:
    made = Device(table.value("name", id))
    made.id, made.simulated = id, bool(table.number("simulated", id))
    return made


def shape(table: Any, id: int) -> Shape:
    return Shape(table.value("dims", id))
