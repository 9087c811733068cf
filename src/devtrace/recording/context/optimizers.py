"""Finds an optimizer's ops by the global hooks around every `step`.

torch does not call the hook after a step that raises. But it runs every step in a region of its profiler. The end of a
region is an op, which the mode sees after an error too (`ThreadState.region`).
"""

import sys
import weakref
from threading import get_ident
from types import FrameType
from typing import Any

from torch.compiler import is_compiling
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.hooks import RemovableHandle

from devtrace.recording.columns.recorded_ops import RecordedOps
from devtrace.recording.columns.thread_state import ThreadState
from devtrace.recording.context.module_tree import class_name


class Optimizers:
    """Marks the thread that is in a `step`, and remembers the optimizers: their state gets names at the end."""

    def __init__(self, recorder: RecordedOps) -> None:
        self.recorder = recorder
        self.seen: dict[int, weakref.ref[Any]] = {}

    def install(self) -> list[RemovableHandle]:
        return [register_optimizer_step_pre_hook(self._before), register_optimizer_step_post_hook(self._after)]

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        sampler = self.recorder.sampler_here()
        if sampler is not None and has_closure(args, kwargs):
            sampler.change()  # it calls modules within the step
        if sampler is not None and sampler.step(optimizer):
            return
        if (state := self.recorder.states.get(get_ident())) is None:
            return
        with self.recorder.faults:
            self._begin(optimizer, args, kwargs, state, sys._getframe(1))

    def _begin(self, optimizer: Any, args: Any, kwargs: Any, state: ThreadState, frame: FrameType) -> None:
        self.seen[id(optimizer)] = weakref.ref(optimizer)
        state.begin_step()
        # Without a closure torch's own optimizers run none of the user's code: all ops are at the line of `step`.
        if not has_closure(args, kwargs) and class_name(type(optimizer), "__module__").startswith("torch.optim"):
            state.fixed = state.find(frame)

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        state = self.recorder.states.get(get_ident())
        if state is not None:
            state.end_step()


def has_closure(args: Any, kwargs: Any) -> bool:
    """Return whether a step got a closure: those who wrap an optimizer pass None."""
    return (len(args) > 1 or bool(kwargs)) and any(callable(each) for each in (*args[1:], *kwargs.values()))
