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

    def count(self, tensor: Any, info: TensorInfo, totals: Totals) -> None:
        """Add to the total of its device what a tensor adds to those counted before; remembers it."""
        new, held = int(id(tensor) not in self._seen), int(info.storage not in self._storages)
        totals[info.device].update(tensors=new, parameters=new * info.parameters, bytes=held * info.bytes)
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
        self._read: Any = quiet
        self.ended: set[str] = set()  # simulated devices with tensors that outlived their simulation
        self._trusted: dict[int, bool] = {}
        self._text: Callable[[Any], str] = cache(str)

    def info(self, tensor: Any) -> TensorInfo:
        kind = type(tensor)
        trusted = self._trusted.get(id(kind))
        if trusted is None:
            trusted = self._trusted[id(kind)] = not _answers_for_itself(tensor)
        if trusted:
            read = self._read
            with suppress(Exception), read.Quiet():  # a tensor that is half made, or of a kind that has no shape
                device, dtype = self._text(read.device_of(tensor)), read.dtype_of(tensor)
                shape = tuple(read.shape_of(tensor))
                count, name = prod(shape), self._text(dtype).removeprefix("torch.")
                parameters = count if issubclass(kind, self._parameter) else 0
                if issubclass(kind, tuple(read.kinds_that_outlived_their_device)):
                    self.ended.add(device)
                return TensorInfo(device, shape, name, parameters, *self._memory(tensor, count * dtype.itemsize))
        return TensorInfo(UNKNOWN, (), "", 0, 0, id(tensor))

    def _memory(self, tensor: Any, own: int) -> tuple[int, int]:
        storage = self._read.own_storage(tensor)
        if storage is None:
            return own, id(tensor)
        return storage.nbytes(), getattr(storage, "_cdata", None) or storage.data_ptr()


def _answers_for_itself(tensor: Any) -> bool:
    dispatching = (own for own in map(class_dict, classes_of(type(tensor))) if "__torch_dispatch__" in own)
    return any(str(own.get("__module__")).partition(".")[0] not in ("torch", "devtrace") for own in dispatching)
