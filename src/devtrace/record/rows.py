"""Tensors become rows: by the stamp on their storage and, because a storage has many views, by shape."""

from __future__ import annotations

import itertools
import threading
from typing import Any

import torch

from devtrace.record import stamps
from devtrace.record.stamps import Past

Layout = tuple[Any, Any, int]
"""What the tensors of one shape last looked like: (dtype, device, layout id)."""


class Rows:
    """The rows of the tensors table, and the layouts (shape, dtype, device) that they have."""

    def __init__(self) -> None:
        self.epoch = stamps.new_epoch()
        self.epochs = {self.epoch}
        self.next = itertools.count()
        # Rows that no op's head tells of: (row, layout, producer, source, site) of tensors that were met, or made
        # several at once.
        self.told: list[tuple[int, int, int, int, int]] = []
        self.layouts: list[tuple[Any, Any, Any]] = []
        self.by_shape: dict[Any, Layout] = {}
        self._by_all: dict[tuple[Any, Any, Any], Layout] = {}
        self._lock = threading.RLock()

    def result(self, tensor: Any, op: int, site: int) -> tuple[int, int]:
        """The row of a plain op's one output; its layout too if the row is new, for the op's head to keep, else -1."""
        try:
            storage = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):
            return self.made(tensor, op, site), -1
        stamp = storage._devtrace_stamp
        shape = tensor.shape
        mine = stamp[0] == self.epoch
        if mine:
            row = stamp[1].get(shape)
            if row is not None:
                return row, -1
        layout = self.by_shape.get(shape)
        if layout is None or layout[0] is not tensor.dtype or layout[1] != tensor.device:
            layout = self.layout(tensor)
        row = next(self.next)
        if mine:
            stamp[1][shape] = row
        else:
            storage._devtrace_stamp = (self.epoch, {shape: row}, site, None)
        return row, layout[2]

    def meet(self, tensor: Any) -> int:
        """The row of a tensor that is an op's input."""
        epoch, views, birth, past = stamps.get(tensor)
        if epoch == self.epoch:
            return self._view(tensor, views, birth, -1)
        with self._lock:
            layout = self.layout(tensor)[2]
            row = self.add(layout, -1, self._past(past, layout), birth)
            stamps.put(tensor, (self.epoch, {tensor.shape: row}, birth, past))
        return row

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
        shape = tensor.shape
        row = views.get(shape)
        if row is None:
            source = next(iter(views.values()))
            row = views[shape] = self.add(self.layout(tensor)[2], producer, source, site)
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
        row = next(self.next)
        self.told.append((row, layout, producer, source, site))
        return row

    def layout(self, tensor: Any) -> Layout:
        return self._layout(tensor.shape, tensor.dtype, tensor.device)

    def _layout(self, shape: Any, dtype: Any, device: Any) -> Layout:
        key = (shape, dtype, device)
        entry = self._by_all.get(key)
        if entry is None:
            with self._lock:
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
            if stamp[0] not in self.epochs:
                return None
            return stamp[1].get(tensor.shape, next(iter(stamp[1].values())))
        except Exception:  # noqa: BLE001 (a subclass that does not answer)
            return None
