"""A module's call, wrapped around `nn.Module.__call__` while recording.

Alone in its file: at frames of this file the walk to the user's line may stop (`sites.BOUNDARY`). The line that called
the module does not change until the call ends. try/finally unwinds for KeyboardInterrupt too, which hooks with
`always_call` do not. The wrapper does nothing while torch.compile traces, where a list that changes would be the user's
error. It uses global names and no closure, because torch.compile guards the cells of a closure: a function compiled
while recording would be compiled again after it. Each call takes its own frame out of an error that passes: a
program that handles it sees the frames that it has plain.
"""

from collections.abc import Callable
from threading import get_ident
from typing import Any

from torch.compiler import is_compiling
from torch.nn import Module

from devtrace.recording.columns.recorded_ops import Sampler

original: Callable[..., Any] = Module.__call__
recording: Any = None
"""`Modules`, which knows this file."""
sampler: Sampler | None = None


def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
    if is_compiling() or recording is None:
        return original(self, *args, **kwargs)
    ident = get_ident()
    if sampler is not None and ident == sampler.inside:
        return original(self, *args, **kwargs)
    left_out_by = sampler if sampler is not None and ident == sampler.ident and sampler.leaves_out(self) else None
    state = recording.recorder.states.get(ident) if left_out_by is None else None
    outer_state = None if state is None else recording.open(self, state)
    if outer_state is None and left_out_by is None:
        return original(self, *args, **kwargs)
    try:
        return original(self, *args, **kwargs)
    except BaseException as error:
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        raise
    finally:
        if left_out_by is not None:
            left_out_by.end_call()
        elif state is not None:
            state.close(outer_state)
