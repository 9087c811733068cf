"""Columns in pages of their own, which go back to the system once nobody has them.

What many small arrays leave behind lies between others and fits no large one: a merge of many ranks would take the
room of all traces twice.
"""

import mmap
from dataclasses import replace
from typing import Final, TypeVar, cast

import numpy as np

from devtrace.trace.tables import Ints, Lists, TraceData, Values

LEAST: Final = 1 << 16
"""Bytes of a column that is worth pages of its own."""

IntsT = TypeVar("IntsT", bound=Ints)


def in_own_pages(trace: TraceData) -> TraceData:
    values = {
        table: {name: _moved(column) for name, column in columns.items()} for table, columns in trace.values.items()
    }
    trace.forget_tables()
    return replace(trace, values=values)


def _moved(column: Values) -> Values:
    if isinstance(column, Lists):
        return Lists(_copied(column.offsets), _copied(column.flat))
    return _copied(column)


def _copied(values: IntsT) -> IntsT:
    if values.nbytes < LEAST:
        return values
    copy = cast(IntsT, np.frombuffer(mmap.mmap(-1, values.nbytes), values.dtype))
    copy[:] = values
    copy.flags.writeable = False
    return copy
