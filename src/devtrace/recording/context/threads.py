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

    def start(own: Call, self: threading.Thread) -> None:
        if (sampler := recorder.sampler_here()) is not None:
            sampler.change()
        state = recorder.states.get(threading.get_ident())
        if state is not None and recorder.active:
            site = state.here(sys._getframe(2))
            self.__dict__[_KEY] = (recorder, site, state.module)
        own(self)

    def bootstrap(own: Call, self: threading.Thread) -> None:
        ours, site, module = self.__dict__.pop(_KEY, (None, -1, -1))
        if ours is not recorder or not recorder.active:
            own(self)
            return
        state = recorder.follow(_label(self), site, module)
        try:
            with on_top(RecordMode(recorder, state)):
                own(self)
        finally:
            recorder.leave(state)

    patches.wrap(_utils.ExceptionWrapper, "__init__", _wrap_as_theirs)
    patches.wrap(threading.Thread, "start", start)
    patches.wrap(threading.Thread, "_bootstrap_inner", bootstrap)


def _wrap_as_theirs(own: Call, self: Any, exc_info: Any = None, where: str = "in background") -> None:
    caught = sys.exc_info() if exc_info is None else exc_info
    if caught[1] is not None:
        hide_our_frames(caught[1])
    own(self, caught, where)


def _label(thread: Any) -> str:
    """Name a thread; a worker of DataParallel with the replica that it runs."""
    own = instance_dict(thread)
    name, args, target = own.get("_name"), own.get("_args"), own.get("_target")
    name = name if type(name) is str else ""
    worker = type(target) is FunctionType and target.__module__ == "torch.nn.parallel.parallel_apply"
    return f"{name}, replica {args[0]}" if worker and type(args) is tuple and args and type(args[0]) is int else name
