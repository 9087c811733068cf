"""Makes the tensors table of the heads' new rows and the extra rows."""

from collections.abc import Callable
from typing import Any

import numpy as np

from devtrace.recording.columns.operator_info import COPY, VIEW
from devtrace.recording.columns.tensor_rows import Array, Rows, dims_of, size_of
from devtrace.recording.finish.merge import Merged, indexes_in
from devtrace.trace.builder import TraceBuilder
from devtrace.trace.tables import Lists


class Tensors:
    """Every known tensor, in the order of the recorder's rows. `site` is the process's."""

    def __init__(self, rows: Rows, merged: Merged, device_row: Callable[[Any], int]) -> None:
        extra = rows.extra_rows_table()  # row, layout, producer, source, site
        ops_with_new_row = np.flatnonzero(merged.new_row >= 0)
        is_derived = merged.by_operator(lambda operator: operator.kind in (VIEW, COPY))
        derived_from = np.where(is_derived, merged.inputs.first, -1)[ops_with_new_row]
        known_rows = np.concatenate([merged.new_row[ops_with_new_row], extra[:, 0]]).astype(np.int64)
        order = np.argsort(known_rows, kind="stable")
        self._layouts = rows.layouts
        self.rows: Array = known_rows[order]
        self.layout: Array = np.concatenate([merged.new_layout[ops_with_new_row], extra[:, 1]])[order].astype(np.int64)
        self.producer: Array = np.concatenate([ops_with_new_row, merged.numbering.ids_of(extra[:, 2])])[order]
        self.source: Array = self.rows_of(np.concatenate([derived_from, extra[:, 3]]))[order]
        self.site: Array = np.concatenate([np.full(len(ops_with_new_row), -1), extra[:, 4]])[order].astype(np.int64)
        devices = _array([device_row(device) for _, _, device in rows.layouts])
        self.device: Array = devices[self.layout]

    def rows_of(self, rows: Array) -> Array:
        """Return the rows of the table for the recorder's rows; -1 for none."""
        return indexes_in(self.rows, rows)

    def row_of(self, row: int | None) -> int | None:
        index = len(self.rows) if row is None else int(np.searchsorted(self.rows, row))
        return index if index < len(self.rows) and self.rows[index] == row else None

    def lists(self, lists: Lists) -> Lists:
        """Map lists of the recorder's rows; an unknown one (a race with a fold) is left out."""
        rows = self.rows_of(lists.flat)
        is_known = rows >= 0
        known_before = np.concatenate(([0], np.cumsum(is_known)))
        return Lists(known_before[lists.offsets], rows[is_known].astype(np.int32))

    def have_dimensions(self, lists: Lists) -> Array:
        """True for lists with a tensor of one dimension or more."""
        has_dimensions = np.array([len(dims_of(shape)) > 0 for shape, _, _ in self._layouts] or [False])
        return lists.have(has_dimensions[self.layout[lists.flat]])

    def columns(self, builder: TraceBuilder, sites: Array, role: Array, name: Array) -> dict[str, Any]:
        """Return the table; `sites` gives the rows of the process's sites."""
        dtypes = _array([builder.text(str(dtype).removeprefix("torch.")) for _, dtype, _ in self._layouts])
        shapes = _array([builder.shape(dims_of(shape)) for shape, _, _ in self._layouts])
        sizes = _array([size_of(layout) for layout in self._layouts], np.int64)
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


def _array(values: list[Any], kind: Any = np.int32) -> Array:
    return np.array(values or [0], dtype=kind)
