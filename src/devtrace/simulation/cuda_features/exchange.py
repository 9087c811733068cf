"""DLPack: what is handed to another library, or back, is known by its address, as a capsule names the CPU only.

With it come the streams of other libraries.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any, Final

import torch

from devtrace.runtime.patches import Call, Patches
from devtrace.simulation.devices import DEVICES
from devtrace.simulation.storage_tags import Tag, claim, tag_of
from devtrace.simulation.tensors import device, move

_HOST: Final = 1  # kDLCPU
_exported: weakref.WeakValueDictionary[int, Tag] = weakref.WeakValueDictionary()


def install(patches: Patches) -> None:
    """Note the tag of what is exported, and give it to what is imported from the same memory."""
    for name in ("_to_dlpack", "_to_dlpack_versioned"):
        patches.wrap(torch._C, name, _export)
    for owner in (torch, torch.utils.dlpack):
        patches.set(owner, "to_dlpack", torch._C._to_dlpack)
    patches.wrap(torch._C, "_from_dlpack", _import)
    external = type("ExternalStream", (torch.cuda.Stream,), {"__init__": _of_pointer})
    for owner in (torch.cuda, torch.cuda.streams):
        patches.set(owner, "ExternalStream", external)
    if numpy := sys.modules.get("numpy"):
        patches.wrap(numpy, "from_dlpack", _refuse)


def _of_pointer(self: Any, stream_ptr: int, device: Any = None, **_: Any) -> None:
    """`torch.cuda.ExternalStream`: a stream that another library made."""
    super(type(self), self).__init__(device, stream_ptr=stream_ptr)


def _export(export: Call, tensor: torch.Tensor, *, dl_device: Any = None, copy: bool | None = None) -> Any:
    asked = torch.device("cpu") if dl_device and dl_device[0] == _HOST else device(tensor)
    tensor = move(tensor, asked, {"copy": copy})
    _exported[tensor.data_ptr()] = tag_of(tensor)
    return export(tensor)


def _refuse(take: Call, given: Any, /, **kwargs: Any) -> Any:
    if isinstance(given, torch.Tensor) and device(given).type == "cuda" and not kwargs.get("device"):
        raise BufferError("Unsupported device in DLTensor.")
    return take(given, **kwargs)


def _import(take: Call, capsule: Any) -> torch.Tensor:
    made: torch.Tensor = take(capsule)
    known = _exported.get(made.data_ptr())
    if known is not None and known.owner.device in DEVICES.by_device:
        claim(made, known.owner)
    return made
