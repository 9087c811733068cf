"""TraceBuilder, the mutable half of the trace: interns text, devices and shapes, appends rows, builds the trace.

It knows no torch type: the recorder hands it names and integers. Rows that come by the thousand (ops, tensors) arrive
as whole columns. A table or column that does not exist is an error of ours, and so a TypeError.
"""

from collections.abc import Hashable, Iterable, Mapping
from itertools import accumulate, chain
from typing import Any, cast

import numpy as np

from devtrace.trace.columns import TABLES, Column
from devtrace.trace.tables import Ints, Lists, TraceData, Values


class TraceBuilder:
    """Fills the tables of `columns.py`; every method that adds a row returns its id."""

    def __init__(self, title: str = "", recorded: str = "", producer: str = "") -> None:
        self.title, self.recorded, self.producer = title, recorded, producer
        self.truncated = 0
        self.notes: list[str] = []
        self.language = ""
        self.findings: tuple[Mapping[str, Any], ...] | None = None
        self._strings: dict[str, int] = {}
        self._interned: dict[Hashable, int] = {}
        # By table and name: a list of values so far, or the whole column as it was handed over.
        self._columns: dict[str, dict[str, Any]] = {
            table: {column.name: [] for column in columns} for table, columns in TABLES.items()
        }

    def text(self, value: str) -> int:
        """Return the index of a string in the trace's table of strings."""
        return self._strings.setdefault(value, len(self._strings))

    def append(self, table: str, **fields: Any) -> int:
        """Add a row. Text is given as str, a reference as an id; a field that is not given is -1, "" or ()."""
        columns = self._columns[table]
        id = self.count(table)
        for column in TABLES[table]:
            value = fields.pop(column.name, None)
            columns[column.name].append(value if type(value) is int else self._encode(column, value))
        if fields:
            raise TypeError(f"{table} has no column {', '.join(fields)}; it has {', '.join(columns)}")
        return id

    def intern(self, table: str, key: Hashable, **fields: Any) -> int:
        """Add a row once for each key."""
        known = self._interned.get((table, key))
        if known is None:
            known = self._interned[table, key] = self.append(table, **fields)
        return known

    def device(self, name: str, *, simulated: bool = False) -> int:
        return self.intern("devices", name, name=name, simulated=int(simulated))

    def shape(self, dims: Iterable[int]) -> int:
        dims = tuple(dims)
        return self.intern("shapes", dims, dims=dims)

    def set(self, table: str, id: int, **fields: Any) -> None:
        kinds = {column.name: column for column in TABLES[table]}
        for name, value in fields.items():
            self._columns[table][name][id] = self._encode(kinds[name], value)

    def get(self, table: str, id: int, name: str) -> int:
        return int(self._columns[table][name][id])

    def columns(self, table: str, values: Mapping[str, Values | list[int]]) -> None:
        """Hand over a whole table as arrays: text as indexes from `text`, lists as `Lists`."""
        expected = {column.name for column in TABLES[table]}
        if set(values) != expected:
            raise TypeError(f"columns of {table}: got {sorted(values)}, expected {sorted(expected)}")
        self._columns[table] = dict(values)

    def count(self, table: str) -> int:
        return len(next(iter(self._columns[table].values())))

    def build(self) -> TraceData:
        return TraceData(
            strings=tuple(self._strings),
            values={
                table: {column.name: _to_arrays(column, self._columns[table][column.name]) for column in columns}
                for table, columns in TABLES.items()
            },
            title=self.title,
            recorded=self.recorded,
            producer=self.producer,
            truncated=self.truncated,
            notes=tuple(self.notes),
            findings=self.findings,
            language=self.language,
        )

    def _encode(self, column: Column, value: Any) -> Any:
        if value is None:
            return () if column.is_list else self.text("") if column.kind == "text" else -1
        return tuple(value) if column.is_list else self.text(value) if column.kind == "text" else value


def _to_arrays(column: Column, values: Any) -> Values:
    if not isinstance(values, list):
        return cast(Values, values)
    if column.is_list:
        offsets = _to_array([0, *accumulate(map(len, values))], wide=True)
        return Lists(offsets, _to_array([*chain.from_iterable(values)], wide=column.wide))
    return _to_array(values, wide=column.wide)


def _to_array(values: list[int], *, wide: bool) -> Ints:
    array: Ints = np.array(values, np.int64)
    array = array if wide else array.astype(np.int32)
    array.flags.writeable = False
    return array
