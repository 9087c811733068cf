"""DLPack: what is handed to another library, or back, is known by its address, as a capsule names the CPU only.

With it come the streams of other libraries.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from typing import Any, Final

import torch

from devtrace.runtime.patches import Patches
from devtrace.simulation.storage_tags import SIMULATED, Tag, claim, tag_of
from devtrace.simulation.tensors import device, move

_HOST: Final = 1  # kDLCPU
_exported: weakref.WeakValueDictionary[int, Tag] = weakref.WeakValueDictionary()


def install(patches: Patches) -> None:
    """Note the tag of what is exported, and give it to what is imported from the same memory."""
    for name in ("_to_dlpack", "_to_dlpack_versioned"):
        patches.set(torch._C, name, _exporting(getattr(torch._C, name)))
    for owner in (torch, torch.utils.dlpack):
        patches.set(owner, "to_dlpack", torch._C._to_dlpack)
    patches.set(torch._C, "_from_dlpack", _importing(torch._C._from_dlpack))
    external = type("ExternalStream", (torch.cuda.Stream,), {"__init__": _of_pointer})
    for owner in (torch.cuda, torch.cuda.streams):
        patches.set(owner, "ExternalStream", external)
    if numpy := sys.modules.get("numpy"):
        patches.set(numpy, "from_dlpack", _refusing(numpy.from_dlpack))


def _of_pointer(self: Any, stream_ptr: int, device: Any = None, **_: Any) -> None:
    """`torch.cuda.ExternalStream`: a stream that another library made."""
    super(type(self), self).__init__(device, stream_ptr=stream_ptr)


def _exporting(export: Callable[..., Any]) -> Callable[..., Any]:
    def to_dlpack(tensor: torch.Tensor, *, dl_device: Any = None, copy: bool | None = None) -> Any:
        asked = torch.device("cpu") if dl_device and dl_device[0] == _HOST else device(tensor)
        tensor = move(tensor, asked, {"copy": copy})
        _exported[tensor.data_ptr()] = tag_of(tensor)
        return export(tensor)

    return to_dlpack


def _refusing(take: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(take)
    def from_dlpack(given: Any, /, **kwargs: Any) -> Any:
        if isinstance(given, torch.Tensor) and device(given).type == "cuda" and not kwargs.get("device"):
            raise BufferError("Unsupported device in DLTensor.")
        return take(given, **kwargs)

    return from_dlpack


def _importing(take: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def from_dlpack(capsule: Any) -> torch.Tensor:
        made = take(capsule)
        known = _exported.get(made.data_ptr())
        if known is not None and known.owner.device in SIMULATED:
            claim(made, known.owner)
        return made

    return from_dlpack
