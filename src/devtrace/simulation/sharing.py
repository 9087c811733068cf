"""A device's memory in another process: what stands for a handle of CUDA's IPC is how torch shares the host's memory.

torch knows a file in memory by its number or its name, whichever the platform has, and keeps what a process has opened.
"""

from collections.abc import Callable
from typing import Any, Final

from torch.multiprocessing.reductions import reduce_storage

from devtrace.runtime.patches import Patches
from devtrace.simulation.devices import DEVICES
from devtrace.simulation.storage_tags import CPU, HOST_TAG, TAG, Tag
from devtrace.simulation.storages import Storage, device, on_a_device

# What opens shared memory, and what it is given; torch passes it on as a handle.
Handle = tuple[Callable[..., Storage], tuple[Any, ...]]
_NOT_TWICE: Final = (
    "Attempted to send CUDA tensor received from another process; this is not currently supported. Consider cloning "
    "before sending."
)


class Received(Tag):
    """Memory of another process, which counts it."""

    __slots__ = ()

    def resize(self, nbytes: int) -> None:
        """Count nothing."""


class _OfTheHost:
    """A storage of a device as torch is to take it, which shares it as the host's."""

    is_cuda = False
    device = CPU

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def __getattr__(self, name: str) -> Any:
        return getattr(self.storage, name)


def install(patches: Patches) -> None:
    """Patch what torch's reductions send a tensor by, and what they make one of at the other end."""

    def receive(index: int, handle: Handle, *_: Any) -> Storage:
        storage = _open(handle)
        if getattr(storage, TAG) is HOST_TAG:
            setattr(storage, TAG, Received(DEVICES.find(index), 0))
        return storage

    patches.set(Storage, "_share_cuda_", _send)
    patches.set(Storage, "_new_shared_cuda", staticmethod(receive))
    patches.set(Storage, "_release_ipc_counter_cuda", staticmethod(lambda handle, _: _open(handle)))


def _send(self: Storage) -> tuple[int | None, Handle | None, int, int, Handle | None, int, bytes, bool]:
    """Return as CUDA does: device, handle, size, offset, what counts its users (the handle again) and an event."""
    if not on_a_device(self):
        raise RuntimeError("_share_cuda_: only available on CUDA")
    if isinstance(getattr(self, TAG), Received):
        raise RuntimeError(_NOT_TWICE)
    handle = None
    if self.nbytes():
        opens, (_, *given) = reduce_storage(_OfTheHost(self))
        handle = opens, (Storage, *given)
    return device(self).index, handle, self.nbytes(), 0, handle, 0, b"", False


def _open(handle: Handle) -> Storage:
    opens, given = handle
    return opens(*given)
