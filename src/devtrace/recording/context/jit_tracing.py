"""Takes our mode out while torch.jit.trace runs, which raises under any dispatch mode, even one that does nothing."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from devtrace.runtime.mode_stack import without
from devtrace.runtime.patches import Patches

if TYPE_CHECKING:
    from devtrace.recording.hot.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    """`_trace_impl` is what `torch.jit.trace` calls; `trace_module` is public by two names."""
    stepping = functools.partial(_stepping_aside, recorder)
    trace = torch.jit._trace
    patches.set(trace, "_trace_impl", stepping(trace._trace_impl))
    whole = stepping(trace.trace_module)
    patches.set(trace, "trace_module", whole)
    patches.set(torch.jit, "trace_module", whole)


def _stepping_aside(recorder: Recorder, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def traced(*args: Any, **kwargs: Any) -> Any:
        state = recorder.states.get(threading.get_ident())
        if state is None or state.mode is None:
            return original(*args, **kwargs)
        recorder.note("note.jit")
        with without(state.mode):
            return original(*args, **kwargs)

    return traced
