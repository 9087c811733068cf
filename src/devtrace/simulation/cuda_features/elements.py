"""Elements that a loop reads and writes one by one: past the mode, which has nothing to do for them.

A mode makes of each such call 3 microseconds of torch's own. Calls go their usual way where another mode lies on the
stack (a recording, a capture), where torch.jit.trace looks on or waits are reported. So they do in a forked process.
"""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from devtrace.runtime.patches import Patches
from devtrace.runtime.quiet import PLAIN
from devtrace.runtime.tracebacks import leave
from devtrace.runtime.watched_reads import READS
from devtrace.simulation.refusals import WAITS

_NUMBERS = frozenset({int, float, bool})
_height, _traced_by_jit = torch._C._len_torch_dispatch_stack, torch._C._get_tracing_state
_past_the_mode = torch._C._DisableTorchDispatch


def install(patches: Patches) -> None:
    """Replace what reads one element, and what writes a number to one."""
    WAITS.are_open = True
    for name in ("item", "__float__", "__int__", "__bool__", "__index__"):
        patches.set(torch.Tensor, name, _reads_past_the_mode(getattr(torch._C.TensorBase, name)))
    patches.set(torch.Tensor, "__setitem__", _writes_past_the_mode(torch._C.TensorBase.__setitem__))


# What a forked process reads is left to its mode, which refuses it.
os.register_at_fork(after_in_child=partial(setattr, WAITS, "are_open", False))


def _reads_past_the_mode(read: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: torch.Tensor) -> Any:
        try:
            is_open = _height() == 1 and WAITS.are_open and not READS.are_watched
            if is_open and type(self) in PLAIN and _traced_by_jit() is None:
                with _past_the_mode():
                    return read(self)
            return read(self)
        except BaseException as error:
            leave(error)
            raise

    method.__name__, method.__doc__ = read.__name__, read.__doc__
    return method


def _writes_past_the_mode(write: Callable[..., Any]) -> Callable[..., Any]:
    def set_item(self: torch.Tensor, key: Any, value: Any) -> Any:
        is_element = type(key) is int and type(value) in _NUMBERS
        if is_element and _height() == 1 and WAITS.are_open and type(self) in PLAIN and _traced_by_jit() is None:
            with _past_the_mode():
                return write(self, key, value)
        return write(self, key, value)

    set_item.__name__ = "__setitem__"
    return set_item
