"""The stream of a function's backward is that of its forward, as autograd's engine arranges it for CUDA."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


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
