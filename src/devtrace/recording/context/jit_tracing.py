"""Takes our mode out while torch.jit.trace runs, which raises under any dispatch mode, even one that does nothing."""

import functools
import threading
from collections.abc import Callable
from typing import Any

import torch

from devtrace.recording.hot.recorder import Recorder
from devtrace.runtime.mode_stack import without
from devtrace.runtime.patches import Patches
from devtrace.runtime.torch_names import fault_of


def install(recorder: Recorder, patches: Patches) -> None:
    """`_trace_impl` is what `torch.jit.trace` calls; `trace_module` is public by two names."""
    stepping = functools.partial(_stepping_aside, recorder)
    if fault_of("trace_impl"):
        patches.set(torch.jit, "trace", stepping(torch.jit.trace))
    else:
        patches.set(torch.jit._trace, "_trace_impl", stepping(torch.jit._trace._trace_impl))
        patches.set(torch.jit._trace, "trace_module", stepping(torch.jit._trace.trace_module))
    patches.set(torch.jit, "trace_module", stepping(torch.jit.trace_module))


def _stepping_aside(recorder: Recorder, original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def traced(*args: Any, **kwargs: Any) -> Any:
        ident = threading.get_ident()
        state = recorder.states.get(ident)
        if state is None or state.mode is None:
            return original(*args, **kwargs)
        recorder.note("note.jit")
        del recorder.states[ident]  # what a call of a module reads of its tensors would be in the graph
        try:
            with without(state.mode):
                return original(*args, **kwargs)
        finally:
            recorder.states[ident] = state

    return traced
