"""Finds the waits that a program asks for (`torch.accelerator.synchronize()`): no op, so no mode sees them.

Each kind of device has one function of torch's C++ for it, which all of torch's Python calls.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from threading import get_ident
from time import perf_counter_ns
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


def install(recorder: Recorder, patches: Patches) -> None:
    """Record each wait of a thread that is being recorded, after it."""
    for function, kind in _KINDS.items():
        own = getattr(torch._C, function, None)
        if own is not None:
            patches.set(torch._C, function, _recorded(recorder, own, kind))


def _recorded(recorder: Recorder, own: Callable[..., Any], kind: str) -> Callable[..., Any]:
    def synchronize(*args: Any) -> Any:
        start = perf_counter_ns()
        done = own(*args)
        state = recorder.states.get(get_ident())
        if state is not None and recorder.active:
            try:
                site = state.fixed if state.fixed >= 0 else state.find(sys._getframe(1))
                recorder.waited(state, f"{kind}.synchronize", site, start, _device(kind, *args))
            except Exception as fault:  # noqa: BLE001 (whatever it is, the user's program runs)
                recorder.fault(fault)
        return done

    return synchronize


def _device(kind: str, index: int | None = None) -> torch.device:
    if kind == "accelerator":
        found = torch._C._accelerator_getAccelerator()
        return torch.device(found.type, torch._C._accelerator_getDeviceIndex() if index is None else index)
    return torch.device("mps", 0) if kind == "mps" else torch.device(kind, getattr(torch, kind).current_device())
