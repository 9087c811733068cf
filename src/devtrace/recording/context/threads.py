"""Records threads that the recorded code starts, each in a mode of its own; all others stay out.

Where torch hands on the error of such a thread (DataParallel, a DataLoader's workers), it reaches the user as text.
"""

import sys
import threading
from types import FunctionType
from typing import Any

from torch import _utils

from devtrace.recording.hot.dispatch import RecordMode
from devtrace.recording.hot.recorder import Recorder
from devtrace.runtime.mode_stack import on_top
from devtrace.runtime.patches import Call, Patches
from devtrace.runtime.tracebacks import hide_our_frames
from devtrace.source.safe_values import instance_dict

_KEY = "_devtrace_started_at"


def install(recorder: Recorder, patches: Patches) -> None:
    """Let every thread started by a recorded one be recorded. Subclasses override `run`, but not `_bootstrap_inner`."""

    def start(original: Call, self: threading.Thread) -> None:
        if (sampler := recorder.sampler_here()) is not None:
            sampler.change()
        state = recorder.states.get(threading.get_ident())
        if state is not None and recorder.active:
            site = state.here(sys._getframe(2))
            self.__dict__[_KEY] = (recorder, site, state.module)
        original(self)

    def bootstrap(original: Call, self: threading.Thread) -> None:
        starter, site, module = self.__dict__.pop(_KEY, (None, -1, -1))
        if starter is not recorder or not recorder.active:
            original(self)
            return
        state = recorder.follow(_name_of(self), site, module)
        try:
            with on_top(RecordMode(recorder, state)):
                original(self)
        finally:
            recorder.leave(state)

    patches.wrap(_utils.ExceptionWrapper, "__init__", _wrap_without_our_frames)
    patches.wrap(threading.Thread, "start", start)
    patches.wrap(threading.Thread, "_bootstrap_inner", bootstrap)


def _wrap_without_our_frames(original: Call, self: Any, exc_info: Any = None, where: str = "in background") -> None:
    exception = sys.exc_info() if exc_info is None else exc_info
    if exception[1] is not None:
        hide_our_frames(exception[1])
    original(self, exception, where)


def _name_of(thread: Any) -> str:
    """Name a thread; a worker of DataParallel with the replica that it runs."""
    attributes = instance_dict(thread)
    name, args, target = attributes.get("_name"), attributes.get("_args"), attributes.get("_target")
    name = name if type(name) is str else ""
    is_worker = type(target) is FunctionType and target.__module__ == "torch.nn.parallel.parallel_apply"
    return f"{name}, replica {args[0]}" if is_worker and type(args) is tuple and args and type(args[0]) is int else name
