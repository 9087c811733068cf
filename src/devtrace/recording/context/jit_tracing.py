"""Takes our mode out while torch.jit.trace runs, which raises under any dispatch mode, even one that does nothing."""

import threading
from functools import partial
from typing import Any

import torch

from devtrace.recording.hot.recorder import Recorder
from devtrace.runtime.mode_stack import without
from devtrace.runtime.patches import Call, Patches
from devtrace.runtime.torch_names import fault_of


def install(recorder: Recorder, patches: Patches) -> None:
    """`_trace_impl` is what `torch.jit.trace` calls; `trace_module` is public by two names."""
    trace = partial(_trace, recorder)
    if fault_of("trace_impl"):
        patches.wrap(torch.jit, "trace", trace)
    else:
        patches.wrap(torch.jit._trace, "_trace_impl", trace)
        patches.wrap(torch.jit._trace, "trace_module", trace)
    patches.wrap(torch.jit, "trace_module", trace)


def _trace(recorder: Recorder, original: Call, *args: Any, **kwargs: Any) -> Any:
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
