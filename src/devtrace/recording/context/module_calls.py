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
from typing import Any, Protocol

from torch.compiler import is_compiling
from torch.nn import Module

from devtrace.recording.columns.thread_state import current_node


class Calls(Protocol):
    """`Modules`, as far as this file knows it."""

    recorder: Any

    def open(self, module: Any, state: Any) -> tuple[int, int, int] | None: ...


original: Callable[..., Any] = Module.__call__
recording: Calls | None = None
budget: Any = None


def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N807
    if is_compiling() or recording is None or (state := recording.recorder.states.get(get_ident())) is None:
        return original(self, *args, **kwargs)
    before = recording.open(self, state)
    if before is None:
        return original(self, *args, **kwargs)
    try:
        return original(self, *args, **kwargs)
    except BaseException as error:
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        raise
    finally:
        state.close(before)


def budgeted(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Do what `__call__` does, in a recording with a budget: an outermost call is where it goes off and on."""
    if is_compiling() or recording is None or budget is None:
        return original(self, *args, **kwargs)
    ident = get_ident()
    if ident == budget.skipped:
        budget.calls -= 1
        if budget.calls:
            return original(self, *args, **kwargs)
        budget.module_called(self)
    elif budget.off and ident == budget.ident:
        if current_node() is not None:
            budget.calls -= 1
            return original(self, *args, **kwargs)
        budget.module_called(self)
    elif (state := recording.recorder.states.get(ident)) is None:
        return original(self, *args, **kwargs)
    elif state is budget.state and not state.opened and current_node() is None:
        budget.module_called(self)
    if budget.off and ident == budget.ident:
        budget.skipped = ident
        try:
            return original(self, *args, **kwargs)
        except BaseException as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            raise
        finally:
            budget.call_ended()
    # Not by way of __call__: `open` takes the line of the frame that called the one that it is called by.
    state = recording.recorder.states[ident]
    before = recording.open(self, state)
    if before is None:
        return original(self, *args, **kwargs)
    try:
        return original(self, *args, **kwargs)
    except BaseException as error:
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        raise
    finally:
        state.close(before)
