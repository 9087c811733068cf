"""A module's call, wrapped around `nn.Module.__call__` while recording.

Alone in its file: frames of this file are where the walk to the user's line may stop (`sites.BOUNDARY`), because the
line that called the module stands still until the call ends. try/finally unwinds for KeyboardInterrupt too, which
hooks with `always_call` do not; and it does nothing while torch.compile traces, where a list that changes would be
the user's error.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from typing import TYPE_CHECKING, Any

from torch.compiler import is_compiling

if TYPE_CHECKING:
    from devtrace.record.modules import Modules
    from devtrace.record.state import ThreadState


def wrapped(original: Callable[..., Any], states: dict[int, ThreadState], modules: Modules) -> Callable[..., Any]:
    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
        if is_compiling() or (state := states.get(get_ident())) is None:
            return original(self, *args, **kwargs)
        before = modules.open(self, state)
        try:
            return original(self, *args, **kwargs)
        finally:
            state.close(before)

    return __call__
