"""Our dispatch mode goes below every other of its thread, and comes out from wherever it lies.

A recorder's mode, or a user's, must see an operator before we answer it, also in threads where theirs was entered
first, and `TorchDispatchMode.__exit__` pops the top of the stack whatever that is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode


def push_below(mode: TorchDispatchMode) -> None:
    """Put a mode at the bottom of this thread's stack."""
    above = _take(0)
    _push_mode(mode)
    _give_back(above)


def take_out(mode: TorchDispatchMode) -> None:
    """Take a mode out of this thread's stack, and leave the others as they were."""
    stack = [_at(position) for position in range(_height())]
    if mode in stack:
        above = _take(stack.index(mode) + 1)
        _pop_mode()
        _give_back(above)


@contextmanager
def below(mode: TorchDispatchMode) -> Iterator[None]:
    """`push_below` for the length of a block."""
    push_below(mode)
    try:
        yield
    finally:
        take_out(mode)


def _take(keep: int) -> list[TorchDispatchMode]:
    return [_pop_mode() for _ in range(_height() - keep)]


def _give_back(modes: list[TorchDispatchMode]) -> None:
    for mode in reversed(modes):
        _push_mode(mode)


def _height() -> int:
    return torch._C._len_torch_dispatch_stack()


def _at(position: int) -> TorchDispatchMode:
    found: TorchDispatchMode = torch._C._get_dispatch_stack_at(position)
    return found
