"""One recording from start to finish: everything that is put in place, in one ExitStack that takes it out again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from threading import current_thread
from types import FrameType
from typing import Any

import torch

from devtrace.recording.columns import sites, stamps
from devtrace.recording.context import errors_before_dispatch, hooks, jit_tracing, threads
from devtrace.recording.context.modules import Modules
from devtrace.recording.context.optimizers import Optimizers
from devtrace.recording.finish.assemble import assemble
from devtrace.recording.finish.names import Named
from devtrace.recording.hot.dispatch import RecordMode
from devtrace.recording.hot.recorder import Recorder
from devtrace.runtime.job import rank_of_job
from devtrace.runtime.mode_stack import on_top
from devtrace.runtime.patches import Patches
from devtrace.source.live_objects import CellText
from devtrace.trace.tables import TraceData

NESTED = "what a recording inside of this one recorded is in its trace only"

_running: list[Recorder] = []


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a recording leaves: the trace, the failing exception's frames by site row, rows of live tensors, cells."""

    trace: TraceData
    frames: tuple[tuple[int, FrameType], ...]
    around: tuple[int, ...]  # in a thread, the sites around the op that raised last, innermost first
    row_of: Callable[[object], int | None]
    cells: tuple[CellText, ...]
    idle: tuple[tuple[int, int], ...]  # sites of optimizer steps that never found a gradient, with their number


class Recording:
    """Puts the recorder in place, takes it out again, and makes the trace of what it saw."""

    def __init__(self, max_ops: int, namespace: Mapping[str, Any] | None) -> None:
        self.recorder = Recorder(max_ops)
        self.modules = Modules(self.recorder)
        self.optimizers = Optimizers(self.recorder)
        self.namespace = namespace
        self._stack = ExitStack()

    @property
    def empty(self) -> bool:
        """Whether no op has been recorded."""
        return not any(state.heads or state.chunks for state in self.recorder.threads)

    def start(self) -> None:
        with ExitStack() as stack:
            stamps.begin()
            stack.callback(stamps.end)
            self.recorder.first_tick = hooks.begin(self.recorder)
            stack.callback(hooks.end, self.recorder)
            patches = Patches()
            stack.callback(patches.undo)
            self.modules.install(patches)
            threads.install(self.recorder, patches)
            jit_tracing.install(self.recorder, patches)
            for handle in self.optimizers.install():
                stack.callback(handle.remove)
            state = self.recorder.follow(current_thread().name)
            stack.callback(self.recorder.leave, state)
            stack.enter_context(on_top(RecordMode(self.recorder, state)))
            stack.callback(_resume, _pause())
            stack.callback(setattr, self.recorder, "active", False)
            self.recorder.active = True
            self.recorder.rank = _rank(-1)
            _running.append(self.recorder)
            stack.callback(_running.remove, self.recorder)
            self._stack = stack.pop_all()

    def stop(self) -> None:
        self.recorder.rank = _rank(self.recorder.rank)
        self._stack.close()

    def finish(self, title: str, error: BaseException | None, simulated: Callable[[str], bool]) -> Recorded:
        """The trace, after `stop` and where the recorded objects still answer as they did."""
        frames = _frames(error)
        if error is not None and not errors_before_dispatch.was_recorded(error, self.recorder):
            self._add_refused(error, frames[0][0] if frames else sites.NOWHERE)
        named = Named(self.recorder.rows, self.namespace)
        named.collect(self.modules, hooks.moves(), self.optimizers)
        idle = self.optimizers.idle()
        around = self.recorder.failures[-1].around if self.recorder.failures else []
        done = assemble(
            self.recorder,
            self.modules,
            named,
            title=title,
            simulated=simulated,
            extra_sites=[*(site for site, _ in frames), *around, *(site for site, _ in idle)],
            producer=_producer(),
        )
        rows = done.site_rows
        found = tuple((rows[site], frame) for site, frame in frames)
        place = done.tensors.place
        return Recorded(
            done.trace,
            found,
            tuple(rows[site] for site in around),
            lambda tensor: place(self.recorder.rows.row_of(tensor)),
            sites.ran(),
            tuple((rows[site], steps) for site, steps in idle),
        )

    def _add_refused(self, error: BaseException, site: int) -> None:
        """A row for what torch refused before there was an op."""
        found = errors_before_dispatch.failing(error)
        if found is None:
            return
        state = self.recorder.threads[0]
        rows: list[int] = []
        self.recorder.gather(found.tensors, rows)
        errors_before_dispatch.reopen(error, state, self.modules)
        self.recorder.refused(state, found.name, site, rows, error)


@cache
def _producer() -> str:
    return f"devtrace {version('devtrace')}"


def _rank(known: int) -> int:
    """This process's rank in its job; what was known of it where nobody can tell."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank()
    told = rank_of_job()
    return known if told is None or known >= 0 else told


def _pause() -> Recorder | None:
    """Stop the recording around this one for as long: both would stamp the same tensors."""
    around = next((recorder for recorder in reversed(_running) if recorder.active), None)
    if around is not None:
        around.note(NESTED)
        around.active = False
    return around


def _resume(around: Recorder | None) -> None:
    if around is not None:
        around.active = True


def _frames(error: BaseException | None) -> list[tuple[int, FrameType]]:
    """The traceback's frames outside of torch and the standard library, innermost first, with their sites."""
    found: list[tuple[int, FrameType]] = []
    traceback = error.__traceback__ if error is not None else None
    caller = sites.NOWHERE
    while traceback is not None:
        code = traceback.tb_frame.f_code
        kind = sites.files[code.co_filename]
        if kind in (sites.USER, sites.LIBRARY):
            site = sites.intern(code, traceback.tb_lasti, caller if kind == sites.LIBRARY else sites.NOWHERE)
            caller = site if kind == sites.USER else caller
            found.append((site, traceback.tb_frame))
        traceback = traceback.tb_next
    return found[::-1]
