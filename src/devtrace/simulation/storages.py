"""Storages: their device, their copies, and so saving, loading, pickling and deepcopy, which torch builds on them."""

from typing import Any, Final

import torch

from devtrace.runtime.patches import Call, Patches
from devtrace.simulation.devices import CPU, DEVICES, TO_HOST
from devtrace.simulation.storage_tags import TAG, Tag, mark_pinned
from devtrace.simulation.tensors import move

Storage = torch.UntypedStorage
_base_device = torch._C.StorageBase.device.__get__  # type: ignore[attr-defined]
_quiet = torch._C.DisableTorchFunction


def device(self: Storage) -> torch.device:
    """`UntypedStorage.device`."""
    answer: torch.device = getattr(self, TAG).owner.device or _base_device(self)
    return answer


def install(patches: Patches) -> None:
    """Patch what torch.save, torch.load, pickle and deepcopy call of a storage."""
    for name, value in _REPLACED.items():
        patches.set(Storage, name, value)
    for name, call in _AROUND.items():
        patches.wrap(Storage, name, call)


def _make_storage(original: Call, kind: type[Storage], *args: Any, device: Any = None, **kwargs: Any) -> Storage:
    target = None if device is None else DEVICES.resolve(device)
    on_cuda = target is not None and target.type == "cuda"
    storage: Storage = original(kind, *args, **kwargs, **({} if target is None or on_cuda else {"device": target}))
    if on_cuda:
        setattr(storage, TAG, Tag(DEVICES.find(target), storage.nbytes(), storage))
    return storage


def _copy_bytes(original: Call, self: Storage, source: Storage, non_blocking: bool = False) -> Storage:
    """Copy as C++ does, which does not know the devices; `to`, `cpu`, `cuda` and `clone` of torch go by this."""
    target_device, source_device = (TO_HOST if device(s).type == "cpu" else device(s) for s in (self, source))
    with _quiet():  # by ops that a mode sees
        _bytes_of(self, target_device).copy_(_bytes_of(source, source_device))
    return self


def _bytes_of(storage: Storage, where: torch.device = CPU) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8, device=where).set_(storage)


def _bytes_without_ops(storage: Storage) -> torch.Tensor:
    with torch._C._DisableTorchDispatch():
        return _bytes_of(storage)


def _write_by_host(original: Call, self: Storage, *args: Any) -> None:
    """Pickle reads a device's memory by a copy to the host."""
    readable = self
    if on_a_device(self):
        with _quiet():
            readable = move(_bytes_without_ops(self), CPU, {}).untyped_storage()
    original(readable, *args)


def _read_by_host(original: Call, self: Storage, *args: Any) -> Any:
    """Unpickling reads into the host's memory, and copies that to a device's."""
    if not on_a_device(self):
        return original(self, *args)
    host_storage = original(Storage(self.nbytes()), *args)
    with _quiet():
        _bytes_without_ops(self).copy_(_bytes_without_ops(host_storage))
    return self


def pin_memory(self: Storage, device: Any = None) -> Storage:
    """A copy in page-locked host memory."""
    if self.device.type != "cpu" and not DEVICES.are_one:
        raise TypeError(f"cannot pin '{Storage.__module__}.UntypedStorage' only CPU memory can be pinned")
    storage = Storage(self.nbytes()).copy_(self, False)
    mark_pinned(storage)
    return storage


def _resize_counted(original: Call, self: Storage, size: int) -> Any:
    """Resize and count anew: FSDP frees a layer's parameters by `resize_(0)`, and takes their memory again."""
    out = original(self, size)
    getattr(self, TAG).resize(self.nbytes())
    return out


def on_a_device(storage: Storage) -> bool:
    return getattr(storage, TAG).owner.device is not None


_AROUND: Final[dict[str, Call]] = {
    "__new__": _make_storage,
    "copy_": _copy_bytes,
    "resize_": _resize_counted,
    "_write_file": _write_by_host,
    "_set_from_file": _read_by_host,
    "is_shared": lambda original, self: on_a_device(self) or original(self),
}
_REPLACED: Final[dict[str, Any]] = {
    "device": property(device),
    "new": lambda self: Storage(device=device(self)),
    "is_pinned": lambda self, device=None: getattr(self, TAG).pinned,
    "pin_memory": pin_memory,
}
