"""Tensors that are not plain: fake ones, which no device holds, and wrappers of other tensors (DTensor).

To C++ a wrapper of simulated tensors is on the CPU, as they are. Its own storage, which is empty, has the tag, or
what is in it is asked. A fake tensor names its device to C++ too, which asks that device for its current stream as
soon as autograd comes by. A build without CUDA has none to ask and ends the process; so does one with CUDA that finds
no driver. So while a simulation runs without real devices the CPU answers.
"""

import ctypes
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import torch

from devtrace.runtime.patches import Call, Patches, around
from devtrace.simulation.devices import CPU, DEVICES
from devtrace.simulation.storage_tags import TAG, Tag

_CPU, _CUDA = 0, 1  # c10::DeviceType
_DEVICE: Final = 7  # the place of `device` among the arguments of `_make_wrapper_subclass`


def install(patches: Patches, undo: ExitStack) -> None:
    """Tag wrappers when they are made, and let the CPU answer for a simulated device, unless there are real ones."""
    make = around(torch.Tensor._make_wrapper_subclass, _make_wrapper)
    patches.set(torch.Tensor, "_make_wrapper_subclass", staticmethod(make))
    if not DEVICES.are_beside_real_ones:
        answer_for_cuda(undo)


def answer_for_cuda(undo: ExitStack) -> None:
    """Put the CPU's guard, which does nothing, where torch's C++ looks for CUDA's."""
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
        guards = (ctypes.c_void_p * 2).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")
    except (OSError, ValueError):
        return  # another platform's name for it
    undo.callback(guards.__setitem__, _CUDA, guards[_CUDA])
    guards[_CUDA] = guards[_CPU]


def _make_wrapper(make: Call, *args: Any, **kwargs: Any) -> Any:
    device = args[_DEVICE] if len(args) > _DEVICE else kwargs.get("device")
    target = None if device is None else DEVICES.resolve(device)
    if target not in DEVICES.by_device:
        return make(*args, **kwargs)
    if len(args) > _DEVICE:
        args = (*args[:_DEVICE], CPU, *args[_DEVICE + 1 :])
    else:
        kwargs["device"] = CPU
    wrapper = make(*args, **kwargs)
    with torch._C.DisableTorchFunctionSubclass():
        setattr(wrapper.untyped_storage(), TAG, Tag(DEVICES.by_device[target], 0))
    return wrapper
