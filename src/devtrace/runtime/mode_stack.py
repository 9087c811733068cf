"""Puts a mode of ours onto a thread's stack of dispatch modes, which others push to and pop from too.

Pushes without `TorchDispatchMode.__enter__`, whose flags (read by torch.compile) are for modes that change what runs.
Takes a mode out from wherever it lies: `__exit__` would pop the top, whoever's mode that is.
"""

import operator
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack, _pop_mode, _push_mode

height: Final[Callable[[], int]] = torch._C._len_torch_dispatch_stack


class BesideCompile(TorchDispatchMode):
    """A mode of ours, which changes nothing of what torch.compile makes."""

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Else a function that torch.compile made runs eager under the mode and stays uncompiled after it."""
        return True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Else the first op imports torch._dynamo (1.2 s) and every op pays 560 ns to be hidden from it."""
        return False


@contextmanager
def on_top(mode: TorchDispatchMode, push: Callable[[TorchDispatchMode], None] = _push_mode) -> Iterator[None]:
    push(mode)
    try:
        yield
    finally:
        take_out(mode)


@contextmanager
def without(mode: TorchDispatchMode) -> Iterator[None]:
    """Take the mode out for the length of a block, then put it back below those that lay above it."""
    above = take_out(mode)
    try:
        yield
    finally:
        if above is not None:
            push_under(mode, above)


def all_are_ours() -> bool:
    """Return whether this thread has no mode but devtrace's own."""
    return all(map(_is_ours, _get_current_dispatch_mode_stack()))


@contextmanager
def of_ours_only() -> Iterator[None]:
    """Take the modes of others out for the length of a block: an op of devtrace's own is none of theirs."""
    if all_are_ours():
        yield
        return
    all_modes = _pop(height())
    _push_back([mode for mode in all_modes if _is_ours(mode)])
    try:
        yield
    finally:
        _pop(height())
        _push_back(all_modes)


def _is_ours(mode: TorchDispatchMode) -> bool:
    return type(mode).__module__.startswith("devtrace.")


def push_below(mode: TorchDispatchMode) -> None:
    """Push a mode below all others, so that a recorder's or a user's mode sees an op before this one answers it."""
    push_under(mode, height())


at_the_bottom: Final = partial(on_top, push=push_below)


def take_out(mode: TorchDispatchMode) -> int | None:
    """Remove a mode from this thread's stack; return how many modes lay above it, None where it was not there."""
    from_the_top = enumerate(reversed(_get_current_dispatch_mode_stack()))
    above = next((index for index, other in from_the_top if other is mode), None)
    if above is not None:
        others = _pop(above)
        _pop_mode()
        _push_back(others)
    return above


def push_under(mode: TorchDispatchMode, above: int) -> None:
    """Push a mode below the `above` topmost ones."""
    others = _pop(min(above, height()))
    _push_mode(mode)
    _push_back(others)


def _pop(count: int) -> list[TorchDispatchMode]:
    return [_pop_mode() for _ in range(count)]


def _push_back(popped: list[TorchDispatchMode]) -> None:
    for mode in reversed(popped):
        _push_mode(mode)


# Numbers where an operator wants a tensor: torch hands a mode the number that a traced script keeps as a tensor.

_DTYPES: Final = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}
_REFUSED: Final = "type 'Tensor'"


def as_tensors(error: BaseException, func: Any, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Return the arguments with tensors for numbers, if that is what the operator refused; else None."""
    if type(error) is not RuntimeError or _REFUSED not in str(error):
        return None
    parameters = func._schema.arguments
    tensors = [
        torch.tensor(arg, dtype=_DTYPES[type(arg)]) if type(arg) in _DTYPES and str(parameter.type) == "Tensor" else arg
        for parameter, arg in zip(parameters, args, strict=False)
    ]
    return None if all(map(operator.is_, tensors, args)) else tuple(tensors)
