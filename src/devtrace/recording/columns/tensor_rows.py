"""Tensors become rows: by the stamp on their storage and, because a storage has many views, by shape.

A part of a storage (`x[0]`, a chunk) is also known by its offset and strides, or `x[0]` would get the name of `x[1]`.
A view of the whole is not: a square's transpose shares its data, device and birth.
"""

import itertools
import threading
from math import prod
from typing import Any, Final

import numpy as np

from devtrace.recording.columns import stamps
from devtrace.recording.columns.chunk import Array as Array
from devtrace.recording.columns.process_history import Past
from devtrace.runtime.quiet import (
    bytes_of,
    device_of,
    dim_of,
    dtype_of,
    is_tensor,
    length_of,
    offset_of,
    shape_of,
    storage_of,
    strides_of,
)

ROW_FIELDS: Final = ("row", "layout", "producer", "source", "site")
SETTLING: Final = 64
"""So many of the last ops, and extra rows, may be of a tensor whose device its first use settles."""
_NO_STORAGE: Final = (NotImplementedError, RuntimeError)
Layout = tuple[Any, Any, int]
"""The latest layout of a shape: (dtype, device, layout id)."""


class Rows:
    """Rows of the tensors table, and their layouts (shape, dtype, device)."""

    def __init__(self) -> None:
        self.epoch = stamps.new_epoch()
        self.epochs = {self.epoch}
        self.next = itertools.count()
        # Rows of tensors that are not an op's one output: inputs first seen here, and outputs of ops with several.
        # Stored flat, the fields are ROW_FIELDS.
        self.extra_rows: list[int] = []
        self.packed: list[Array] = []
        self.folded: list[tuple[int, int]] = []  # ranges of rows whose ops were folded away
        self.layouts: list[tuple[Any, Any, Any]] = []
        self.by_shape: dict[Any, Layout] = {}
        self._by_all: dict[tuple[Any, Any, Any], Layout] = {}
        self.lock = threading.RLock()

    def row_for_result(self, tensor: Any, op: int, site: int) -> tuple[int, int]:
        """Return the row of an op's one output, and its layout for the op's head to keep (-1: the row is not new)."""
        try:
            storage = tensor.untyped_storage()
            shape = tensor.shape
        except _NO_STORAGE:
            return self.row_for_output(tensor, op, site), -1
        stamp = storage._devtrace_stamp
        has_rows = stamp[0] == self.epoch
        key = shape
        if has_rows:
            row = stamp[1].get(shape)
            if row is None and tensor.nbytes != storage.nbytes():
                key = (shape, tensor.storage_offset(), tensor.stride())
                row = stamp[1].get(key)
            if row is not None:
                return row, -1
        layout = self.by_shape.get(shape)
        if layout is None or layout[0] is not tensor.dtype or layout[1] != tensor.device:
            layout = self.layout(tensor)
        row = next(self.next)
        if has_rows:
            stamp[1][key] = row
        else:
            storage._devtrace_stamp = (self.epoch, {shape: row}, site, None)
        return row, layout[2]

    def row_for_input(self, tensor: Any) -> int:
        epoch, views, birth, past = stamps.get(tensor)
        if epoch == self.epoch:
            return self._row_of_view(tensor, views, birth, -1)
        with self.lock:
            epoch, views, birth, past = stamps.get(tensor)  # another thread may have been here
            views = self._remaining(views) if epoch in self.epochs else {}
            if not views:
                layout = self.layout(tensor)[2]
                views = {key_of(tensor): self.add(layout, -1, self._add_past(past, layout), birth)}
            stamps.put(tensor, (self.epoch, views, birth, past))
        return self._row_of_view(tensor, views, birth, -1)

    def forget_input(self, tensor: Any) -> None:
        """Take back the newest row if of the tensor that `torch.tensor` or `set_` makes, unless its birth was known."""
        with self.lock:
            _, views, birth, _ = stamps.get(tensor)
            newest_row = self.extra_rows[-len(ROW_FIELDS) :]
            if birth < 0 and newest_row and newest_row[0] in views.values():
                del self.extra_rows[-len(ROW_FIELDS) :]
                stamps.put(tensor, stamps.UNSTAMPED)

    def row_for_output(self, tensor: Any, op: int, site: int, source: int = -1, past: Past | None = None) -> int:
        """Return the row of one of several outputs, or of a copy, which has a `source` and a `past`."""
        epoch, views, _, _ = stamps.get(tensor)
        if epoch == self.epoch:
            return self._row_of_view(tensor, views, -1, op)
        with self.lock:
            epoch, views, _, _ = stamps.get(tensor)
            if epoch == self.epoch:
                return self._row_of_view(tensor, views, -1, op)
            row = self.add(self.layout(tensor)[2], op, source, -1)
            stamps.put(tensor, (self.epoch, {_shape(tensor): row}, site, past))
            return row

    def _row_of_view(self, tensor: Any, views: dict[Any, int], site: int, producer: int) -> int:
        """Return the row of a tensor whose storage has rows already."""
        row = views.get(_shape(tensor))
        if row is None:
            key = key_of(tensor)
            with self.lock:
                row = views.get(key)
                if row is None:
                    source = next(iter(views.values()))
                    row = views[key] = self.add(self.layout(tensor)[2], producer, source, site)
        return row

    def _add_past(self, past: Past | None, layout: int) -> int:
        """Add rows for the tensors that one was copied from before this recording; return the nearest."""
        if past is None:
            return -1
        site, device, dtype, earlier = past
        earlier_layout = self.layout_of(self.layouts[layout][0], dtype, device)[2]
        return self.add(earlier_layout, -1, self._add_past(earlier, earlier_layout), site)

    def add(self, layout: int, producer: int, source: int, site: int) -> int:
        with self.lock:
            row = next(self.next)
            self.extra_rows += (row, layout, producer, source, site)
            if len(self.extra_rows) >= len(ROW_FIELDS) * 4096:
                self.packed.append(_table_of(self.extra_rows))
                self.extra_rows = []
        return row

    def extra_rows_table(self, first: int = 0) -> Array:
        """Return the extra rows from the one with the number `first` on.

        Another thread may ask: only the copy of the rows that are not packed holds the recording up.
        """
        with self.lock:
            packed, start = [], 0
            for table in self.packed:
                packed.append(table[max(first - start, 0) :])
                start += len(table)
            extra = self.extra_rows[max(first - start, 0) * len(ROW_FIELDS) :]
        return np.concatenate([*packed, _table_of(extra)])

    def fold(self, extra: Array, first: int, last: int) -> None:
        """Replace the extra rows, and forget the rows from `first` to `last`, which stamps still name."""
        with self.lock:
            self.packed, self.extra_rows = [extra], []
            # Folding goes on where it ended. A few rows of kept ops in between may be forgotten: the next op that uses
            # such a tensor gives it a new row.
            if self.folded and 0 <= first - self.folded[-1][1] < 4096:
                first = self.folded.pop()[0]
            self.folded.append((first, last))
            self.epoch = stamps.new_epoch()
            self.epochs.add(self.epoch)

    def _remaining(self, views: dict[Any, int]) -> dict[Any, int]:
        """Return those of a stamp's rows that were not folded away."""
        if not self.folded:
            return views
        return {key: row for key, row in views.items() if not any(first <= row < last for first, last in self.folded)}

    def layout(self, tensor: Any) -> Layout:
        return self.layout_of(_shape(tensor), dtype_of(tensor), device_of(tensor))

    def layout_of(self, shape: Any, dtype: Any, device: Any) -> Layout:
        key = (shape, dtype, device)
        entry = self._by_all.get(key)
        if entry is None:
            with self.lock:
                entry = self._by_all.get(key)
                if entry is None:
                    entry = self._by_all[key] = (dtype, device, len(self.layouts))
                    self.layouts.append(key)
        self.by_shape[shape] = entry
        return entry

    def of_storage(self, tensor: Any) -> set[int]:
        """Return the rows of all that shares a tensor's memory."""
        epoch, views, _, _ = stamps.get(tensor)
        return set(views.values()) if epoch == self.epoch else set()

    def settle(self, rows: set[int], device: Any) -> None:
        """Put rows on a device, as far as they are among the last extra rows: `torch.cuda.FloatTensor(2, 3)[0]`."""
        row_at, layout_at, width = ROW_FIELDS.index("row"), ROW_FIELDS.index("layout"), len(ROW_FIELDS)
        with self.lock:
            end = len(self.extra_rows)
            for at in range(max(end - SETTLING * width, 0), end, width):
                if self.extra_rows[at + row_at] in rows:
                    self.extra_rows[at + layout_at] = self.on_device(self.extra_rows[at + layout_at], device)

    def on_device(self, layout: int, device: Any, dtype: Any = None) -> int:
        """Return the id of a layout that differs from `layout` in its device or dtype alone."""
        shape, former_dtype, former_device = self.layouts[layout]
        return self.layout_of(shape, dtype or former_dtype, device or former_device)[2]

    def row_of(self, tensor: Any) -> int | None:
        """Return the row of a live tensor, None if no op has used it."""
        if not is_tensor(tensor):
            return None
        try:
            epoch, views, _, _ = stamps.get(tensor)
            views = (self._remaining(views) if self.folded else views) if epoch in self.epochs else {}
            if not views or (row := views.get(shape := _shape(tensor))) is not None:
                return row if views else None
            key = key_of(tensor)  # as `_row_of_view` asks: hann_window returns a part of a storage
            return next(iter(views.values())) if key == shape else views.get(key)
        except Exception:  # noqa: BLE001 (a subclass that does not answer)
            return None


def key_of(tensor: Any) -> Any:
    """Return the key of a tensor among those of its storage: its shape, and for a part its offset and strides."""
    try:
        if bytes_of(tensor) == storage_of(tensor).nbytes():
            return _shape(tensor)
        return _shape(tensor), offset_of(tensor), strides_of(tensor)
    except _NO_STORAGE:
        return _shape(tensor)


def _shape(tensor: Any) -> Any:
    """Return a shape; of a nested tensor, which has none, only the number of tensors in it is known."""
    try:
        return shape_of(tensor)
    except RuntimeError:
        return (length_of(tensor, 0), *(-1,) * (dim_of(tensor) - 1))


def _table_of(extra_rows: list[int]) -> Array:
    return np.array(extra_rows, dtype=np.int64).reshape(-1, len(ROW_FIELDS))


def size_of(layout: tuple[Any, Any, Any]) -> int:
    """Return the bytes of a tensor of this layout (shape, dtype, device); 0 where a size is no number."""
    shape, dtype, _ = layout
    dims = dims_of(shape)
    return 0 if min(dims, default=0) < 0 else prod(dims) * int(dtype.itemsize)


def dims_of(shape: Any) -> tuple[int, ...]:
    """Return a shape's numbers; a size that is still a symbol or ragged is -1."""
    return tuple(size if isinstance(size, int) else -1 for size in shape)
