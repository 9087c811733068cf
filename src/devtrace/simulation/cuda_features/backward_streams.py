"""The stream of a backward is that of its forward, as autograd's engine arranges it for CUDA.

A function of the program's own runs on it, and so does a hook of a tensor: the engine is on the stream of the node that
made the tensor. Of torch's own nodes their numbers tell which stream was current when they were made.
"""

import functools
import threading
from bisect import bisect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch

from devtrace.runtime.patches import Patches
from devtrace.runtime.torch_names import take

_MOST: Final = 10_000
"""Switches that are remembered; nodes from before those have the default stream."""
_next_node: Final = take("_C._autograd._get_sequence_nr", "backward", instead=lambda: 0)


class _Switches(threading.local):
    """Streams of a thread in their order, each with the number of the next node when it became current."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.streams: list[Any] = []


_switches = _Switches()


def install(patches: Patches) -> None:
    """Let a tensor's hook find the stream on which the tensor was made."""
    original: Callable[..., Any] = torch.Tensor.register_hook

    @functools.wraps(original)
    def register_hook(self: torch.Tensor, hook: Any) -> Any:
        stream = _stream_of(self.grad_fn) if _switches.numbers and self.grad_fn is not None else None
        return original(self, hook if stream is None else _on(stream, hook))

    _switches.__init__()  # type: ignore[misc]
    patches.set(torch.Tensor, "register_hook", register_hook)


def switched(stream: Any) -> None:
    """Remember that a stream has become current."""
    if stream.stream_id or _switches.numbers:
        _switches.numbers.append(_next_node())
        _switches.streams.append(stream)
        del _switches.numbers[:-_MOST], _switches.streams[:-_MOST]


def _stream_of(node: Any) -> Any:
    """Return the stream on which a node was made; None for the default one."""
    at = bisect(_switches.numbers, node._sequence_nr()) - 1
    stream = _switches.streams[at] if at >= 0 else None
    return stream if stream is not None and stream.stream_id else None


def _on(stream: Any, hook: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(hook)
    def run(*args: Any) -> Any:
        with stream:
            return hook(*args)

    return run


@contextmanager
def kept() -> Iterator[None]:
    """Come out of a backward on the stream that it began on, also where a function's own raised."""
    before = torch.cuda.current_stream()
    try:
        yield
    finally:
        if torch.cuda.current_stream() != before:
            torch.cuda.set_stream(before)


def follow(node: Any) -> None:
    """Let a function's backward find the current stream again, unless that is the default one."""
    stream = torch.cuda.current_stream()
    before: list[Any] = []

    def enter(_: Any) -> None:
        before.append(torch.cuda.current_stream())
        torch.cuda.set_stream(stream)

    def leave(*_: Any) -> None:
        torch.cuda.set_stream(before.pop())

    if stream.stream_id:
        node.register_prehook(enter)
        node.register_hook(leave)
