"""Notes steps of optimizers that never find a gradient: they hold tensors that the model has no longer."""

import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from threading import get_ident
from typing import Any

from torch.compiler import is_compiling
from torch.optim.optimizer import register_optimizer_step_pre_hook

from devtrace.costs.rules.idle_optimizer import IdleOptimizer
from devtrace.recording.columns.recorded_ops import RecordedOps
from devtrace.recording.context.optimizers import has_closure
from devtrace.recording.finish.assemble import Assembly
from devtrace.recording.finish.observer import Observer
from devtrace.runtime.patches import Patches
from devtrace.runtime.quiet import Quiet, gradient_of
from devtrace.source.object_walk import parameters_of
from devtrace.trace.ids import SiteId


class IdleOptimizers(Observer):
    """Counts the steps of each optimizer at each site, and those before its first gradient."""

    def __init__(self, recorder: RecordedOps, asked: Mapping[str, Any]) -> None:
        super().__init__(recorder, asked)
        self._at_work: set[int] = set()  # optimizers that found a gradient in the step before
        self._steps: dict[tuple[int, int], list[int]] = {}  # (optimizer, site) -> all, those before a gradient

    def install(self, patches: Patches, stack: ExitStack) -> None:
        stack.callback(register_optimizer_step_pre_hook(self._before).remove)

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        state, is_left_out = self.recorder.states.get(get_ident()), self.recorder.sampler_here() is not None
        if is_compiling() or has_closure(args, kwargs) or (state is None and not is_left_out):
            return
        if state is not None or id(optimizer) not in self._at_work:
            with self.recorder.faults:
                self._count(optimizer, (state or self.recorder.threads[0]).find(sys._getframe(1)))

    def _count(self, optimizer: Any, site: int) -> None:
        steps = self._steps.setdefault((id(optimizer), site), [0, 0])
        if steps[0] > steps[1] or _has_gradient(optimizer):
            self._at_work.add(id(optimizer))
        else:
            self._at_work.discard(id(optimizer))
            steps[1] += 1
        steps[0] += 1

    def sites(self) -> Iterable[int]:
        return [site for _, site in self._steps]

    def facts(self, done: Assembly) -> Iterable[IdleOptimizer]:
        for (_, site), (every, without) in self._steps.items():
            if site >= 0 and every == without:
                yield IdleOptimizer(SiteId(done.site_rows[site]), every)


def _has_gradient(optimizer: Any) -> bool:
    try:
        with Quiet():
            parameters = parameters_of(optimizer)
            return not parameters or any(gradient_of(parameter) is not None for parameter in parameters)
    except Exception:  # noqa: BLE001 (an optimizer of another make is not ours to judge, nor to stop)
        return True
