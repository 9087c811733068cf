"""A module's call, wrapped around `nn.Module.__call__` while recording.

Alone in its file: frames of this file are where the walk to the user's line may stop (`sites.BOUNDARY`), because the
line that called the module stands still until the call ends. try/finally unwinds for KeyboardInterrupt too, which hooks
with `always_call` do not; and it does nothing while torch.compile traces, where a list that changes would be the user's
error. Global names and not a closure, for torch.compile guards the cells of a closure: what was compiled while
recording would be compiled again after it.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import Any, Protocol

from torch.compiler import is_compiling
from torch.nn import Module


class Calls(Protocol):
    """What keeps the calls of one recording."""

    recorder: Any

    def open(self, module: Any, state: Any) -> tuple[int, int, int]: ...


original: Callable[..., Any] = Module.__call__
recording: Calls | None = None


def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
    if is_compiling() or recording is None or (state := recording.recorder.states.get(get_ident())) is None:
        return original(self, *args, **kwargs)
    before = recording.open(self, state)
    try:
        return original(self, *args, **kwargs)
    finally:
        state.close(before)
