"""Finds the waits that no mode sees: those that a program asks for, and those of a tensor's text.

Each kind of device has one function of torch's C++ for all its work, which all of torch's Python calls
(`torch.cuda.synchronize()`). Streams and events are waited for by a method of their class. That of `torch.Stream` and
`torch.Event` is in C, where it stays. For `print(tensor)` torch takes all modes out while it writes the values; however
often it waits for one text, that is one wait here.
"""

import sys
from functools import partial
from math import prod
from threading import get_ident
from time import perf_counter_ns
from types import FunctionType
from typing import Any, Final

import torch

from devtrace.recording.hot.recorder import Recorder
from devtrace.runtime.patches import Call, Patches
from devtrace.runtime.quiet import Quiet, device_of, shape_of

_KINDS: Final = {
    "_accelerator_synchronizeDevice": "accelerator",
    "_cuda_synchronize": "cuda",
    "_xpu_synchronize": "xpu",
    "_mps_deviceSynchronize": "mps",
}
_MODULES: Final = {"torch.cuda.streams": "cuda", "torch.xpu.streams": "xpu", "torch.mps.event": "mps"}
"""Where the classes of streams and events are that are written in Python."""
_WITHOUT_VALUES: Final = ("cpu", "meta")
_OWN_DISPATCH: Final = torch.Tensor.__torch_dispatch__


def install_synchronizing(recorder: Recorder, patches: Patches) -> None:
    for function, kind in _KINDS.items():
        if hasattr(torch._C, function):
            patches.wrap(torch._C, function, partial(_record, recorder, f"{kind}.synchronize", partial(_device, kind)))
    for module, kind in _MODULES.items():
        for name in ("Stream", "Event"):
            owner = getattr(sys.modules.get(module), name, None)
            if type(getattr(owner, "synchronize", None)) is FunctionType:
                waits = partial(_record, recorder, f"{kind}.{name}.synchronize", partial(_device_of_stream, kind))
                patches.wrap(owner, "synchronize", waits)


def install_printing(recorder: Recorder, patches: Patches) -> None:
    patches.wrap(torch._tensor_str, "_str", partial(_record, recorder, "Tensor.__repr__", _tensor_with_values))


def _record(recorder: Recorder, name: str, target_of: Call, original: Call, *args: Any, **kwargs: Any) -> Any:
    """Record each wait of a thread that is being recorded, after it: for a device or a tensor, if for any."""
    start = perf_counter_ns()
    result = original(*args, **kwargs)
    state = recorder.states.get(get_ident())
    if state is not None and recorder.active:
        with recorder.faults:
            target = target_of(*args, **kwargs)
            if target is not None:
                recorder.note_wait(state, name, state.here(sys._getframe(1)), start, target)
    return result


def _device_of_stream(kind: str, stream: Any) -> torch.device | None:
    """Return the device of a stream or event; None for an event that nobody recorded, for which nobody waits."""
    return torch.device("mps", 0) if kind == "mps" else stream.device


def _device(kind: str, index: int | None = None) -> torch.device:
    if kind == "accelerator":
        accelerator = torch._C._accelerator_getAccelerator()
        return torch.device(accelerator.type, torch._C._accelerator_getDeviceIndex() if index is None else index)
    return torch.device("mps", 0) if kind == "mps" else torch.device(kind, getattr(torch, kind).current_device())


def _tensor_with_values(tensor: Any, *, tensor_contents: Any = None) -> Any:
    """Return a tensor whose text has values of a device. What wraps a tensor writes the text of that one."""
    if tensor_contents is not None or type(tensor).__torch_dispatch__ is not _OWN_DISPATCH:
        return None
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return None
    with Quiet():
        return tensor if device_of(tensor).type not in _WITHOUT_VALUES and prod(shape_of(tensor)) > 0 else None
