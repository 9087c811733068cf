"""Tensors become rows: by the stamp on their storage and, because a storage has many views, by shape.

A part of a storage (`x[0]`, a chunk) is also told by where it lies, or `x[0]` would be called by the name of `x[1]`. A
view of the whole is not: a square's transpose has its data, device and birth, so what is said of one is true of both.
"""

from __future__ import annotations

import itertools
import threading
from math import prod
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch

from devtrace.recording.columns import stamps
from devtrace.recording.columns.stamps import Past

Array = npt.NDArray[Any]
TOLD: Final = ("row", "layout", "producer", "source", "site")
_NO_STORAGE: Final = (NotImplementedError, RuntimeError)
Layout = tuple[Any, Any, int]
"""What the tensors of one shape last looked like: (dtype, device, layout id)."""


class Rows:
    """The rows of the tensors table, and the layouts (shape, dtype, device) that they have."""

    def __init__(self) -> None:
        self.epoch = stamps.new_epoch()
        self.epochs = {self.epoch}
        self.next = itertools.count()
        # Rows that no op's head tells of, of tensors that were met, or made several at once; see `TOLD`.
        self.told: list[int] = []
        self.packed: list[Array] = []
        self.gone: list[tuple[int, int]] = []  # ranges of rows whose ops were folded away
        self.layouts: list[tuple[Any, Any, Any]] = []
        self.by_shape: dict[Any, Layout] = {}
        self._by_all: dict[tuple[Any, Any, Any], Layout] = {}
        self.lock = threading.RLock()

    def result(self, tensor: Any, op: int, site: int) -> tuple[int, int]:
        """The row of a plain op's one output; its layout too if the row is new, for the op's head to keep, else -1."""
        try:
            storage = tensor.untyped_storage()
        except _NO_STORAGE:
            return self.made(tensor, op, site), -1
        stamp = storage._devtrace_stamp
        shape = tensor.shape
        mine = stamp[0] == self.epoch
        key = shape
        if mine:
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
        if mine:
            stamp[1][key] = row
        else:
            storage._devtrace_stamp = (self.epoch, {shape: row}, site, None)
        return row, layout[2]

    def meet(self, tensor: Any) -> int:
        """The row of a tensor that is an op's input."""
        epoch, views, birth, past = stamps.get(tensor)
        if epoch == self.epoch:
            return self._view(tensor, views, birth, -1)
        with self.lock:
            views = self._still(views) if epoch in self.epochs else {}
            if not views:
                layout = self.layout(tensor)[2]
                views = {_key(tensor): self.add(layout, -1, self._past(past, layout), birth)}
            stamps.put(tensor, (self.epoch, views, birth, past))
        return self._view(tensor, views, birth, -1)

    def unmeet(self, tensor: Any) -> None:
        """Take back what was said of a tensor that an op is only giving birth to, unless its birth was known."""
        with self.lock:
            _, views, birth, _ = stamps.get(tensor)
            if birth < 0 and len(self.told) >= len(TOLD) and self.told[-len(TOLD)] in views.values():
                del self.told[-len(TOLD) :]
                stamps.put(tensor, stamps.UNSTAMPED)

    def made(self, tensor: Any, op: int, site: int, source: int = -1, past: Past | None = None) -> int:
        """The row of an op's output; `source` and `past` when it is a copy."""
        epoch, views, _, _ = stamps.get(tensor)
        if epoch == self.epoch:
            return self._view(tensor, views, -1, op)
        row = self.add(self.layout(tensor)[2], op, source, -1)
        stamps.put(tensor, (self.epoch, {tensor.shape: row}, site, past))
        return row

    def _view(self, tensor: Any, views: dict[Any, int], site: int, producer: int) -> int:
        """The row of a tensor whose storage has rows already."""
        row = views.get(tensor.shape)
        if row is None:
            key = _key(tensor)
            row = views.get(key)
            if row is None:
                source = next(iter(views.values()))
                row = views[key] = self.add(self.layout(tensor)[2], producer, source, site)
        return row

    def _past(self, past: Past | None, layout: int) -> int:
        """Rows for what a tensor was copied from before this recording."""
        if past is None:
            return -1
        site, device, earlier = past
        shape, dtype, _ = self.layouts[layout]
        there = self._layout(shape, dtype, device)[2]
        return self.add(there, -1, self._past(earlier, there), site)

    def add(self, layout: int, producer: int, source: int, site: int) -> int:
        with self.lock:
            row = next(self.next)
            self.told += (row, layout, producer, source, site)
            if len(self.told) >= 5 * 4096:
                self.packed.append(self.telling())
                self.told = []
        return row

    def telling(self) -> Array:
        """The table of what is told and not packed."""
        return np.array(self.told, dtype=np.int64).reshape(-1, 5)

    def all_told(self) -> Array:
        return np.concatenate([*self.packed, self.telling()])

    def told_since(self, first: int) -> Array:
        """What was told from a number on, for another thread: only the copy of what is new holds the recording up."""
        with self.lock:
            packed, at = [], 0
            for table in self.packed:
                packed.append(table[max(first - at, 0) :])
                at += len(table)
            told = self.told[max(first - at, 0) * len(TOLD) :]
        return np.concatenate([*packed, np.array(told, dtype=np.int64).reshape(-1, len(TOLD))])

    def fold(self, told: Array, first: int, last: int) -> None:
        """Forget rows: from now on this is what is told, and rows from `first` to `last` are gone from stamps."""
        with self.lock:
            self.packed, self.told = [told], []
            # Folding goes on where it ended. A few rows of kept ops in between may be forgotten: they are met again.
            if self.gone and 0 <= first - self.gone[-1][1] < 4096:
                first = self.gone.pop()[0]
            self.gone.append((first, last))
            self.epoch = stamps.new_epoch()
            self.epochs.add(self.epoch)

    def _still(self, views: dict[Any, int]) -> dict[Any, int]:
        """Those of a stamp's rows that were not folded away."""
        return {key: row for key, row in views.items() if not any(first <= row < last for first, last in self.gone)}

    def layout(self, tensor: Any) -> Layout:
        return self._layout(tensor.shape, tensor.dtype, tensor.device)

    def _layout(self, shape: Any, dtype: Any, device: Any) -> Layout:
        key = (shape, dtype, device)
        entry = self._by_all.get(key)
        if entry is None:
            with self.lock:
                entry = self._by_all[key] = (dtype, device, len(self.layouts))
                self.layouts.append(key)
        self.by_shape[shape] = entry
        return entry

    def row_of(self, tensor: Any) -> int | None:
        """The row of a tensor that was seen, for whoever looks at live objects."""
        if not isinstance(tensor, torch.Tensor):
            return None
        try:
            stamp = stamps.get(tensor)
            views = self._still(stamp[1]) if stamp[0] in self.epochs else {}
            key = _key(tensor)
            return views.get(key, next(iter(views.values()), None) if key == tensor.shape else None)
        except Exception:  # noqa: BLE001 (a subclass that does not answer)
            return None


def _key(tensor: Any) -> Any:
    """What tells a tensor from others of its storage: its shape, and where it lies if it is a part."""
    try:
        if tensor.nbytes == tensor.untyped_storage().nbytes():
            return tensor.shape
        return tensor.shape, tensor.storage_offset(), tensor.stride()
    except _NO_STORAGE:
        return tensor.shape


def size_of(layout: tuple[Any, Any, Any]) -> int:
    """The bytes of a tensor of a layout (shape, dtype, device); 0 where a size is no number."""
    shape, dtype, _ = layout
    return max(prod(dims_of(shape)) * int(dtype.itemsize), 0)


def dims_of(shape: Any) -> tuple[int, ...]:
    """A shape's numbers; a size that is still a symbol or ragged counts as -1."""
    return tuple(size if isinstance(size, int) else -1 for size in shape)
