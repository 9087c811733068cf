"""The tensors table from what heads and tellings say, and the recorder's rows as places in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from devtrace.recording.columns.operator_info import COPY, VIEW, by_id
from devtrace.recording.columns.tensor_rows import Rows, dims_of, size_of
from devtrace.recording.finish.merge import Flat, Merged, without
from devtrace.trace.builder import TraceBuilder
from devtrace.trace.tables import Lists

Array = npt.NDArray[Any]


class Tensors:
    """Every tensor that is known of, in the order of the recorder's rows. `site` is the process's."""

    def __init__(self, rows: Rows, merged: Merged, device_row: Callable[[Any], int]) -> None:
        told = rows.all_told()
        fresh = np.flatnonzero(merged.new_row >= 0)
        known = np.concatenate([merged.new_row[fresh], told[:, 0]]).astype(np.int64)
        order = np.argsort(known, kind="stable")
        self._layouts = rows.layouts
        self.rows: Array = known[order]
        self.layout: Array = np.concatenate([merged.new_layout[fresh], told[:, 1]])[order].astype(np.int64)
        self.producer: Array = np.concatenate([fresh, merged.place.of(told[:, 2])])[order]
        self.source: Array = self.places(np.concatenate([_sources(merged, fresh), told[:, 3]]))[order]
        self.site: Array = np.concatenate([np.full(len(fresh), -1), told[:, 4]])[order].astype(np.int64)
        devices = _table([device_row(device) for _, _, device in rows.layouts])
        self.device: Array = devices[self.layout]

    def __len__(self) -> int:
        return len(self.rows)

    def places(self, rows: Array) -> Array:
        """Where the recorder's rows are in the table; -1 for none."""
        at = np.searchsorted(self.rows, rows)
        there = at < len(self.rows)
        there[there] = self.rows[at[there]] == rows[there]
        return np.where(there, at, -1)

    def place(self, row: int | None) -> int | None:
        found = -1 if row is None else int(self.places(np.array([row]))[0])
        return None if found < 0 else found

    def lists(self, lists: Flat) -> Lists:
        """Lists of rows as lists of places; what is not known (a race with a fold) is left out."""
        offsets, flat = without(lists, self.places(lists[1]) < 0)
        return Lists(offsets, self.places(flat).astype(np.int32))

    def have_dimensions(self, lists: Lists) -> Array:
        """Which lists have a tensor of one dimension or more."""
        deep = np.array([len(dims_of(shape)) > 0 for shape, _, _ in self._layouts] or [False])
        before = np.concatenate(([0], np.cumsum(deep[self.layout[lists.flat]])))
        large: Array = before[lists.offsets[1:]] > before[lists.offsets[:-1]]
        return large

    def columns(self, builder: TraceBuilder, sites: Array, role: Array, name: Array) -> dict[str, Any]:
        """The table, given for the process's sites their rows."""
        dtypes = _table([builder.text(str(dtype).removeprefix("torch.")) for _, dtype, _ in self._layouts])
        shapes = _table([builder.shape(dims_of(shape)) for shape, _, _ in self._layouts])
        sizes = _table([size_of(layout) for layout in self._layouts], np.int64)
        return {
            "device": self.device.astype(np.int32),
            "dtype": dtypes[self.layout],
            "shape": shapes[self.layout],
            "bytes": sizes[self.layout],
            "producer": self.producer.astype(np.int32),
            "site": sites[self.site],
            "role": role,
            "name": name,
            "source": self.source.astype(np.int32),
        }


def _sources(merged: Merged, ops: Array) -> Array:
    """What the outputs of ops were taken from: a view's or a clone's source is the op's first input."""
    begins, flat = merged.inputs
    derived = _table([plan.kind in (VIEW, COPY) for plan in by_id], np.bool_)[merged.plan[ops]]
    first = np.append(flat, -1)[np.where(begins[ops + 1] > begins[ops], begins[ops], len(flat))]
    return np.where(derived, first, -1)


def _table(values: list[Any], kind: Any = np.int32) -> Array:
    return np.array(values or [0], dtype=kind)
