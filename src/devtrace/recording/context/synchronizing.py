"""Finds the waits that a program asks for (`torch.cuda.synchronize()`, `event.synchronize()`): no mode sees them.

Each kind of device has one function of torch's C++ for all its work, which all of torch's Python calls. Streams and
events are waited for by a method of their class. That of `torch.Stream` and `torch.Event` is in C, where it stays.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial, wraps
from threading import get_ident
from time import perf_counter_ns
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final

import torch

if TYPE_CHECKING:
    from devtrace.recording.hot.recorder import Recorder
    from devtrace.runtime.patches import Patches

_KINDS: Final = {
    "_accelerator_synchronizeDevice": "accelerator",
    "_cuda_synchronize": "cuda",
    "_xpu_synchronize": "xpu",
    "_mps_deviceSynchronize": "mps",
}
_MODULES: Final = {"torch.cuda.streams": "cuda", "torch.xpu.streams": "xpu", "torch.mps.event": "mps"}
"""Where the classes of streams and events are that are written in Python."""


def install(recorder: Recorder, patches: Patches) -> None:
    """Record each wait of a thread that is being recorded, after it."""
    for function, kind in _KINDS.items():
        own = getattr(torch._C, function, None)
        if own is not None:
            waits = _recorded(recorder, own, f"{kind}.synchronize", partial(_device, kind))
            patches.set(torch._C, function, waits)
    for module, kind in _MODULES.items():
        for name in ("Stream", "Event"):
            owner = getattr(sys.modules.get(module), name, None)
            own = getattr(owner, "synchronize", None)
            if type(own) is FunctionType:
                waits = _recorded(recorder, own, f"{kind}.{name}.synchronize", partial(_device_of, kind))
                patches.set(owner, "synchronize", waits)


def _recorded(
    recorder: Recorder, own: Callable[..., Any], name: str, device_of: Callable[..., torch.device | None]
) -> Callable[..., Any]:
    @wraps(own)
    def synchronize(*args: Any, **kwargs: Any) -> Any:
        start = perf_counter_ns()
        done = own(*args, **kwargs)
        state = recorder.states.get(get_ident())
        if state is not None and recorder.active:
            try:
                device = device_of(*args, **kwargs)
                if device is not None:
                    site = state.fixed if state.fixed >= 0 else state.find(sys._getframe(1))
                    recorder.waited(state, name, site, start, device)
            except Exception as fault:  # noqa: BLE001 (whatever it is, the user's program runs)
                recorder.fault(fault)
        return done

    return synchronize


def _device_of(kind: str, waited_for: Any) -> torch.device | None:
    """Return the device of a stream or event; None for an event that nobody recorded, for which nobody waits."""
    return torch.device("mps", 0) if kind == "mps" else waited_for.device


def _device(kind: str, index: int | None = None) -> torch.device:
    if kind == "accelerator":
        found = torch._C._accelerator_getAccelerator()
        return torch.device(found.type, torch._C._accelerator_getDeviceIndex() if index is None else index)
    return torch.device("mps", 0) if kind == "mps" else torch.device(kind, getattr(torch, kind).current_device())
