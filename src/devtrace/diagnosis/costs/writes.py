"""Writes to the memory of tensors that were there before."""

from collections.abc import Collection
from typing import Final

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import TraceQueries

_OF_LISTS: Final = ("aten._foreach_", "aten._fused_")


def are_written(queries: TraceQueries, bases: Collection[int], first: int, last: int | None = None) -> bool:
    """Return whether an op after `first`, up to `last`, writes to one of these tensors."""
    return first_write(queries, bases, first, last) >= 0


def first_write(queries: TraceQueries, bases: Collection[int], first: int, last: int | None = None) -> int:
    """Return the first op that writes to one of these tensors or a part of it, else -1. A view writes nothing."""
    outputs = queries.trace.ops.lists("outputs")
    end = len(queries.trace.ops) if last is None else last + 1
    by = np.repeat(np.arange(first + 1, end), np.diff(outputs.offsets)[first + 1 : end])
    rows = outputs.flat[outputs.offsets[first + 1] : outputs.offsets[end]]
    writes = ~queries.is_kind("view")[by] & (queries.producers[rows] < by)
    found = by[writes & np.isin(queries.bases[rows], list(bases))]
    return int(found[0]) if len(found) else _first_write_in_lists(queries, bases, first, end)


def _first_write_in_lists(queries: TraceQueries, bases: Collection[int], first: int, end: int) -> int:
    """Return the first of an optimizer's ops on lists, which have no outputs, that takes one of the tensors."""
    names = [id for text, id in queries.strings.items() if text.startswith(_OF_LISTS) and text.split(".")[1][-1] == "_"]
    inputs, is_of_lists = queries.trace.ops.lists("inputs"), np.isin(queries.trace.ops.ints("name"), names)
    by = np.repeat(np.arange(first + 1, end), np.diff(inputs.offsets)[first + 1 : end])
    rows = inputs.flat[inputs.offsets[first + 1] : inputs.offsets[end]]
    found = by[is_of_lists[by] & np.isin(queries.bases[rows], list(bases))]
    return int(found[0]) if len(found) else -1
