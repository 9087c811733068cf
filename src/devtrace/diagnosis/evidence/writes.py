"""Writes to the memory of tensors that were there before."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from devtrace.diagnosis.evidence.trace_queries import TraceQueries


def are_written(queries: TraceQueries, bases: Collection[int], first: int, last: int | None = None) -> bool:
    """Return whether an op after `first`, up to `last`, writes to one of these tensors. A view writes nothing."""
    outputs = queries.trace.ops.lists("outputs")
    end = len(queries.trace.ops) if last is None else last + 1
    by = np.repeat(np.arange(first + 1, end), np.diff(outputs.offsets)[first + 1 : end])
    rows = outputs.flat[outputs.offsets[first + 1] : outputs.offsets[end]]
    writes = ~queries.is_kind("view")[by] & (queries.producers[rows] < by)
    return bool(np.isin(rows[writes], list(bases)).any())
