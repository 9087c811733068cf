"""Facts that torch itself knows of a tensor; its class is not asked, its data is not read.

A tensor whose class answers for itself (`__torch_dispatch__` of a class that is neither torch's nor ours) is not asked:
it has device "?".
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from math import prod
from typing import Any, Final, NamedTuple

from devtrace.source.safe_values import class_dict, classes_of

UNKNOWN: Final = "?"


class TensorInfo(NamedTuple):
    """A tensor's device, type and extent; `storage` tells which tensors share memory, `bytes` is all of that memory."""

    device: str
    shape: tuple[int, ...]
    dtype: str
    parameters: int
    bytes: int
    storage: int


Totals = defaultdict[str, Counter[str]]
"""By device the number of "tensors", their "parameters" and "bytes"."""


@dataclass(slots=True)
class DeviceTotals:
    """Totals by device that count each tensor, and the bytes of each storage, once."""

    by_device: Totals = field(default_factory=lambda: defaultdict(Counter))
    _seen: set[int] = field(default_factory=set)
    _storages: set[int] = field(default_factory=set)

    def count(self, tensor: Any, info: TensorInfo, added_to: Totals) -> None:
        """Add a tensor to the total of its device; a tensor or a storage that was counted before adds nothing."""
        new, new_storage = int(id(tensor) not in self._seen), int(info.storage not in self._storages)
        added_to[info.device].update(tensors=new, parameters=new * info.parameters, bytes=new_storage * info.bytes)
        self._seen.add(id(tensor))
        self._storages.add(info.storage)


class Asker:
    """Asks torch about tensors. Made where torch is imported. Keeps no answer: thousands of objects that last for a
    listing are a full collection of the garbage every other time, 100 ms in a process with torch."""

    def __init__(self) -> None:
        from devtrace.runtime import quiet

        torch: Any = sys.modules["torch"]
        self.tensor: type = torch.Tensor
        self.module: type = torch.nn.Module
        self._parameter: type = torch.nn.Parameter
        self._quiet: Any = quiet
        self.ended: set[str] = set()  # simulated devices with tensors that outlived their simulation
        self._trusted: dict[int, bool] = {}
        self._text: Callable[[Any], str] = cache(str)

    def info(self, tensor: Any) -> TensorInfo:
        kind = type(tensor)
        may_ask = self._trusted.get(id(kind))
        if may_ask is None:
            may_ask = self._trusted[id(kind)] = not _answers_for_itself(tensor)
        if may_ask:
            quiet = self._quiet
            with suppress(Exception), quiet.Quiet():  # a tensor that is half made, or of a kind that has no shape
                device, dtype = self._text(quiet.device_of(tensor)), quiet.dtype_of(tensor)
                shape = tuple(quiet.shape_of(tensor))
                count, name = prod(shape), self._text(dtype).removeprefix("torch.")
                parameters = count if issubclass(kind, self._parameter) else 0
                if issubclass(kind, tuple(quiet.kinds_that_outlived_their_device)):
                    self.ended.add(device)
                return TensorInfo(device, shape, name, parameters, *self._size_and_id(tensor, count * dtype.itemsize))
        return TensorInfo(UNKNOWN, (), "", 0, 0, id(tensor))

    def _size_and_id(self, tensor: Any, own_bytes: int) -> tuple[int, int]:
        storage = self._quiet.own_storage(tensor)
        if storage is None:
            return own_bytes, id(tensor)
        return storage.nbytes(), getattr(storage, "_cdata", None) or storage.data_ptr()


def _answers_for_itself(tensor: Any) -> bool:
    bodies = (body for body in map(class_dict, classes_of(type(tensor))) if "__torch_dispatch__" in body)
    return any(str(body.get("__module__")).partition(".")[0] not in ("torch", "devtrace") for body in bodies)
