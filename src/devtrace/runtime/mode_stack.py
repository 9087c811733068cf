"""Our place on a thread's stack of dispatch modes, which others push to and pop from too.

Pushed without `TorchDispatchMode.__enter__`, whose flags (read by torch.compile) are for modes that change what runs,
and taken out from wherever it lies: `__exit__` would pop the top, whoever's mode that is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode


@contextmanager
def pushed(mode: TorchDispatchMode) -> Iterator[None]:
    """The mode is on this thread's stack for the length of a block."""
    _push_mode(mode)
    try:
        yield
    finally:
        _take_out(mode)


@contextmanager
def without(mode: TorchDispatchMode) -> Iterator[None]:
    """The mode is not on this thread's stack for the length of a block, and then back in its place."""
    above = _take_out(mode)
    try:
        yield
    finally:
        if above is not None:
            height = torch._C._len_torch_dispatch_stack()
            others = [_pop_mode() for _ in range(min(above, height))]
            _push_mode(mode)
            _push_all(others)


def _take_out(mode: TorchDispatchMode) -> int | None:
    """How many modes lay above it; None where it was not there."""
    height = torch._C._len_torch_dispatch_stack()
    stack = [torch._C._get_dispatch_stack_at(position) for position in range(height)]
    places = [position for position, found in enumerate(stack) if found is mode]
    if not places:
        return None
    others = [_pop_mode() for _ in range(height - places[-1] - 1)]
    _pop_mode()
    _push_all(others)
    return len(others)


def _push_all(popped: list[TorchDispatchMode]) -> None:
    for mode in reversed(popped):
        _push_mode(mode)
