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
from devtrace.runtime.quiet import Quiet, gradient_of
from devtrace.source.object_walk import parameters_of


class Optimizers:
    """Marks the thread that is in a `step`, and remembers the optimizers: their state gets names at the end."""

    def __init__(self, recorder: RecordedOps) -> None:
        self.recorder = recorder
        self._at_work: set[int] = set()  # optimizers that found a gradient in the step before
        self.seen: dict[int, weakref.ref[Any]] = {}
        self.steps: dict[tuple[int, int], list[int]] = {}  # (optimizer, site) -> all, those before a gradient

    def idle(self) -> list[tuple[int, int]]:
        """Return the sites whose optimizer never found a gradient, with the number of steps."""
        return [(site, all) for (_, site), (all, without) in self.steps.items() if site >= 0 and all == without]

    def install(self) -> list[RemovableHandle]:
        return [register_optimizer_step_pre_hook(self._before), register_optimizer_step_post_hook(self._after)]

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if is_compiling():
            return
        sampler = self.recorder.sampler_here()
        if sampler is not None and _has_closure(args, kwargs):
            sampler.change()  # it calls modules within the step
        if sampler is not None and sampler.step(optimizer):
            if id(optimizer) not in self._at_work:
                self._count(optimizer, self.recorder.threads[0].where(sys._getframe(1)))
            return
        if (state := self.recorder.states.get(get_ident())) is None:
            return
        with self.recorder.faults:
            self._begin(optimizer, args, kwargs, state, sys._getframe(1))

    def _begin(self, optimizer: Any, args: Any, kwargs: Any, state: ThreadState, frame: FrameType) -> None:
        self.seen[id(optimizer)] = weakref.ref(optimizer)
        state.begin_step()
        if not _has_closure(args, kwargs):  # a closure runs the user's code, and makes the gradients in the step
            site = state.find(frame)
            self._count(optimizer, site)
            # torch's own optimizers run none of the user's code: all their ops are at the line of `step`.
            if class_name(type(optimizer), "__module__").startswith("torch.optim"):
                state.fixed = site

    def _count(self, optimizer: Any, site: int) -> None:
        steps = self.steps.setdefault((id(optimizer), site), [0, 0])
        if steps[0] > steps[1] or _has_gradient(optimizer):
            self._at_work.add(id(optimizer))
        else:
            self._at_work.discard(id(optimizer))
            steps[1] += 1
        steps[0] += 1

    def _after(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        state = self.recorder.states.get(get_ident())
        if state is not None:
            state.end_step()


def _has_closure(args: Any, kwargs: Any) -> bool:
    """Return whether a step got a closure: those who wrap an optimizer pass None."""
    return (len(args) > 1 or bool(kwargs)) and any(callable(each) for each in (*args[1:], *kwargs.values()))


def _has_gradient(optimizer: Any) -> bool:
    try:
        with Quiet():
            parameters = parameters_of(optimizer)
            return not parameters or any(gradient_of(parameter) is not None for parameter in parameters)
    except Exception:  # noqa: BLE001 (an optimizer of another make is not ours to judge, nor to stop)
        return True
