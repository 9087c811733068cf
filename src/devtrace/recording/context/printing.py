"""Finds the waits of `print(tensor)`: torch takes all modes out while it writes a tensor's values, so none sees them.

However often torch waits for one text, that is one wait here.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from math import prod
from threading import get_ident
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Final

import torch

from devtrace.runtime.quiet import Quiet, device_of, shape_of

if TYPE_CHECKING:
    from devtrace.recording.hot.recorder import Recorder
    from devtrace.runtime.patches import Patches

NAME: Final = "Tensor.__repr__"
_WITHOUT_VALUES: Final = ("cpu", "meta")
_OWN_DISPATCH: Final = torch.Tensor.__torch_dispatch__


def install(recorder: Recorder, patches: Patches) -> None:
    """Record each text of a tensor, after it, in the threads that are being recorded."""
    patches.set(torch._tensor_str, "_str", _recorded(recorder, torch._tensor_str._str))


def _recorded(recorder: Recorder, write: Callable[..., str]) -> Callable[..., str]:
    @functools.wraps(write)
    def text_of(tensor: Any, *, tensor_contents: Any = None) -> str:
        start = perf_counter_ns()
        text = write(tensor, tensor_contents=tensor_contents)
        state = recorder.states.get(get_ident())
        if state is not None and recorder.active:
            try:
                if tensor_contents is None and _has_waited(tensor):
                    site = state.fixed if state.fixed >= 0 else state.find(sys._getframe(1))
                    recorder.has_read(state, NAME, site, start, tensor)
            except Exception as fault:  # noqa: BLE001 (whatever it is, the user has the text)
                recorder.fault(fault)
        return text

    return text_of


def _has_waited(tensor: Any) -> bool:
    """Return whether the text has values of a device. What wraps a tensor writes the text of that one."""
    if type(tensor).__torch_dispatch__ is not _OWN_DISPATCH:
        return False
    if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        return False
    with Quiet():
        return device_of(tensor).type not in _WITHOUT_VALUES and prod(shape_of(tensor)) > 0
