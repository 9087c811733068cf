"""Writes to the memory of tensors that were there before."""

from collections.abc import Collection
from typing import Final

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.trace.ids import NO_OP, OpId, TensorId
from devtrace.trace.tables import Ints

_OF_LISTS: Final = ("aten._foreach_", "aten._fused_")


def are_written(queries: TraceQueries, bases: Collection[TensorId], first: OpId, last: OpId | None = None) -> bool:
    """Return whether an op after `first`, up to `last`, writes to one of these tensors."""
    return first_write(queries, bases, first, last) >= 0


def first_write(queries: TraceQueries, bases: Collection[TensorId], first: OpId, last: OpId | None = None) -> OpId:
    """Return the first op that writes to one of these tensors or a part of it, else -1. A view writes nothing."""
    end = len(queries.trace.ops) if last is None else last + 1
    by, rows = _with_rows(queries, "outputs", bases, first, end)
    found = by[~queries.is_kind("view")[by] & (queries.producers[rows] < by)]
    return OpId(int(found[0])) if len(found) else _first_write_in_lists(queries, bases, first, end)


def _with_rows(
    queries: TraceQueries, column: str, bases: Collection[TensorId], first: OpId, end: int
) -> tuple[Ints, Ints]:
    """Return the ops between two that have one of these tensors, or a part of it, in a column, each with that."""
    lists = queries.trace.ops.lists(column)
    rows = lists.flat[lists.offsets[first + 1] : lists.offsets[end]]
    chosen = np.isin(queries.bases[rows], list(bases))
    by = np.repeat(np.arange(first + 1, end), np.diff(lists.offsets)[first + 1 : end])
    return by[chosen], rows[chosen]


def _first_write_in_lists(queries: TraceQueries, bases: Collection[TensorId], first: OpId, end: int) -> OpId:
    """Return the first of an optimizer's ops on lists, which have no outputs, that takes one of the tensors."""
    names = [id for text, id in queries.strings.items() if text.startswith(_OF_LISTS) and text.split(".")[1][-1] == "_"]
    by, _ = _with_rows(queries, "inputs", bases, first, end)
    found = by[np.isin(queries.trace.ops.ints("name")[by], names)]
    return OpId(int(found[0])) if len(found) else NO_OP
