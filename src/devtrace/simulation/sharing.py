"""A device's memory in another process: what stands for a handle of CUDA's IPC is how torch shares the host's memory.

torch knows a file in memory by its number or its name, whichever the platform has, and keeps what a process has opened.
What is handed to another library by DLPack, or back, is known by its address, as a capsule names the CPU only. With it
come the streams of other libraries.
"""

import sys
import weakref
from collections.abc import Callable
from typing import Any, Final

import torch
from torch.multiprocessing.reductions import reduce_storage

from devtrace.runtime.patches import Call, Patches
from devtrace.simulation.devices import CPU, DEVICES
from devtrace.simulation.storage_tags import HOST_TAG, TAG, Tag, claim, tag_of
from devtrace.simulation.storages import Storage, on_a_device
from devtrace.simulation.streams import Stream
from devtrace.simulation.tensors import device, move

# What opens shared memory, and what it is given; torch passes it on as a handle.
Handle = tuple[Callable[..., Storage], tuple[Any, ...]]
_HOST: Final = 1  # kDLCPU
_exported: weakref.WeakValueDictionary[int, Tag] = weakref.WeakValueDictionary()
_NOT_TWICE: Final = (
    "Attempted to send CUDA tensor received from another process; this is not currently supported. Consider cloning "
    "before sending."
)


class Received(Tag):
    """Memory of another process, which counts it."""

    __slots__ = ()

    def resize(self, nbytes: int) -> None:
        """Count nothing."""


class _SeenAsHosts:
    """Shows a device's storage to torch as one of the host, so that torch shares its memory."""

    is_cuda = False
    device = CPU

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self.storage, name)


def install(patches: Patches) -> None:
    """Patch what torch's reductions send a tensor by, what they make one of at the other end, and DLPack."""
    patches.set(Storage, "_share_cuda_", _send_storage)
    patches.set(Storage, "_new_shared_cuda", staticmethod(_receive_storage))
    patches.set(Storage, "_release_ipc_counter_cuda", staticmethod(lambda handle, _: _open_handle(handle)))
    for name in ("_to_dlpack", "_to_dlpack_versioned"):
        patches.wrap(torch._C, name, _export_capsule)
    for owner in (torch, torch.utils.dlpack):
        patches.set(owner, "to_dlpack", torch._C._to_dlpack)
    patches.wrap(torch._C, "_from_dlpack", _import_capsule)
    for owner in (torch.cuda, torch.cuda.streams):
        patches.set(owner, "ExternalStream", ExternalStream)
    if numpy := sys.modules.get("numpy"):
        patches.wrap(numpy, "from_dlpack", _refuse_in_numpy)


def _send_storage(self: Storage) -> tuple[int | None, Handle | None, int, int, Handle | None, int, bytes, bool]:
    """Return as CUDA does: device, handle, size, offset, what counts its users (the handle again) and an event."""
    if not on_a_device(self):
        raise RuntimeError("_share_cuda_: only available on CUDA")
    if isinstance(getattr(self, TAG), Received):
        raise RuntimeError(_NOT_TWICE)
    handle = None
    if self.nbytes():
        function, (_, *arguments) = reduce_storage(_SeenAsHosts(self))  # `_` is that class
        handle = function, (Storage, *arguments)
    return getattr(self, TAG).owner.index, handle, self.nbytes(), 0, handle, 0, b"", False


def _receive_storage(index: int, handle: Handle, *_: Any) -> Storage:
    storage = _open_handle(handle)
    if getattr(storage, TAG) is HOST_TAG:
        setattr(storage, TAG, Received(DEVICES.find(index), 0))
    return storage


def _open_handle(handle: Handle) -> Storage:
    function, arguments = handle
    return function(*arguments)


class ExternalStream(Stream):
    """`torch.cuda.ExternalStream`: a stream that another library made."""

    def __init__(self, stream_ptr: int, device: Any = None, **_: Any) -> None:
        super().__init__(device, stream_ptr=stream_ptr)


def _export_capsule(export: Call, tensor: torch.Tensor, *, dl_device: Any = None, copy: bool | None = None) -> Any:
    target = torch.device("cpu") if dl_device and dl_device[0] == _HOST else device(tensor)
    tensor = move(tensor, target, {"copy": copy})
    _exported[tensor.data_ptr()] = tag_of(tensor)
    return export(tensor)


def _refuse_in_numpy(from_dlpack: Call, value: Any, /, **kwargs: Any) -> Any:
    if isinstance(value, torch.Tensor) and device(value).type == "cuda" and not kwargs.get("device"):
        raise BufferError("Unsupported device in DLTensor.")
    return from_dlpack(value, **kwargs)


def _import_capsule(from_dlpack: Call, capsule: Any) -> torch.Tensor:
    tensor: torch.Tensor = from_dlpack(capsule)
    tag = _exported.get(tensor.data_ptr())
    if tag is not None and tag.owner.device in DEVICES.by_device:
        claim(tensor, tag.owner)
    return tensor
