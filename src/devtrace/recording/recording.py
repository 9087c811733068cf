"""One recording from start to finish: one ExitStack takes out everything that was installed."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import takewhile
from types import FrameType, MappingProxyType
from typing import Any

import torch

from devtrace.recording.columns import sites
from devtrace.recording.columns.recorded_ops import Sampler, thread_name
from devtrace.recording.context import errors_before_dispatch, hooks, jit_tracing, threads, waits
from devtrace.recording.context.happenings import recorders
from devtrace.recording.context.modules import Modules
from devtrace.recording.context.optimizers import Optimizers
from devtrace.recording.finish.assemble import Assembly, Recorded
from devtrace.recording.finish.observer import observers_of
from devtrace.recording.hot.dispatch import RecordMode
from devtrace.recording.hot.recorder import Recorder
from devtrace.runtime import eager_paths, profiles, scripting, warned_lines
from devtrace.runtime.mode_stack import on_top
from devtrace.runtime.observers import observers
from devtrace.runtime.patches import Patches
from devtrace.runtime.rank import rank_of_job
from devtrace.runtime.torch_names import install_part
from devtrace.runtime.tracebacks import chain_of, entries_of
from devtrace.source.live_objects import Evidence
from devtrace.trace.tables import TraceData


class Recording:
    """Installs the recorder, takes it out again, and makes the trace: `start`, `stop`, `finish`, in this order."""

    def __init__(
        self,
        max_ops: int,
        namespace: Mapping[str, Any] | None,
        sampler: Callable[[Recorder], Sampler] | None = None,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.recorder = Recorder(max_ops)
        self.recorder.observers = observers_of(self.recorder, options)
        self._sampler = self.recorder.sampler = sampler(self.recorder) if sampler is not None else None
        self.modules = Modules(self.recorder)
        self.optimizers = Optimizers(self.recorder)
        self.namespace = namespace
        self._stack = ExitStack()
        self._ended = False
        self.left_out: dict[str, str] = {}  # parts that this torch does not bear, each with its fault

    @property
    def empty(self) -> bool:
        """True if no op has been recorded."""
        return not any(state.heads or state.chunks for state in self.recorder.threads)

    def start(self) -> None:
        with ExitStack() as stack:
            self.recorder.first_tick = hooks.begin(self.recorder)
            stack.callback(hooks.end, self.recorder)
            patches = Patches()
            stack.callback(patches.undo)
            self.modules.install(patches)
            for handle in self.modules.follow_tensors():
                stack.callback(handle.remove)
            for part, install in self._parts(patches).items():
                fault = install_part(part, install, patches, stack)
                self.left_out |= {part: fault} if fault else {}
            observers.append(self.recorder)
            stack.callback(observers.remove, self.recorder)
            for handle in self.optimizers.install():
                stack.callback(handle.remove)
            state = self.recorder.follow(thread_name())
            stack.callback(self.recorder.leave, state)
            stack.enter_context(on_top(RecordMode(self.recorder, state)))
            if self._sampler is not None:
                self._sampler.begin(state)
                stack.callback(self._sampler.stop)
            for outer in [recorder for recorder in recorders if recorder.active]:  # both would stamp the same tensors
                outer.note("note.nested")
                outer.active = False
                stack.callback(setattr, outer, "active", True)
            stack.callback(setattr, self.recorder, "active", False)
            self.recorder.active = True
            self.recorder.rank = _rank(-1)
            self._stack = stack.pop_all()

    def _parts(self, patches: Patches) -> dict[str, Callable[[ExitStack], object]]:
        """Return what installs each part. The first four need nothing here: their names are taken at import."""
        return {
            **dict.fromkeys(("backward", "module_moves", "module_tree", "waits"), lambda _: None),
            "threads": lambda _: threads.install(self.recorder, patches),
            **{part: partial(observer.install, patches) for part, observer in self.recorder.observers.items()},
            "jit_tracing": lambda _: jit_tracing.install(self.recorder, patches),
            "synchronizing": lambda _: waits.install_synchronizing(self.recorder, patches),
            "printing": lambda _: waits.install_printing(self.recorder, patches),
            "eager_paths": lambda _: eager_paths.install(patches),
            "warned_lines": lambda _: warned_lines.install(patches),
            "profiles": lambda _: profiles.install(patches),
            "scripting": lambda _: scripting.install(patches),
        }

    def stop(self) -> None:
        self.halt()
        self._stack.close()

    def halt(self) -> None:
        """Record nothing more, but leave all installed: for a process that is about to be ended, from any thread."""
        self.recorder.rank = _rank(self.recorder.rank)
        self.recorder.active = False
        self._ended = True

    def finish(self, title: str, ended_by: BaseException | None, simulated: Callable[[str], bool]) -> Recorded:
        """Make the trace, after `stop` or `halt`, while simulated tensors still answer for their device."""
        error = ended_by if isinstance(ended_by, Exception) else None  # no `sys.exit()`, no Ctrl-C
        if not self._ended:
            raise RuntimeError("finish() of a running recording: ops would come into the trace that is being made")
        if self._sampler is not None:
            self._sampler.stop()  # after `halt` it is still in place
        origin = errors_before_dispatch.origin_of(error, self.recorder) if error is not None else None
        frames = _frames_of(error, origin)
        if origin is not None and not errors_before_dispatch.was_recorded(origin, self.recorder):
            if errors_before_dispatch.asked_for_an_array(origin) is not None:
                frames = _from_first_with_torch(frames)
            self._add_refused(origin, frames[0][0] if frames else sites.NOWHERE)
        around = self.recorder.failures[-1].around if self.recorder.failures else []
        errors = [*chain_of(error)]
        for observer in self.recorder.observers.values():
            observer.end(errors)
        assembly = Assembly(
            self.recorder,
            self.modules,
            self.optimizers,
            self.namespace,
            title=title,
            simulated=simulated,
            extra_sites=[*(site for site, _ in frames), *around],
        )
        late = {
            row: (assembly.op_of(op), torch_made_it)
            for recorded_row, (op, torch_made_it) in self.recorder.late.items()
            if (row := assembly.tensors.row_of(recorded_row)) is not None
        }
        evidence = Evidence(self._end_of_gap(assembly), late)
        snapshot = replace(
            assembly.snapshot(frames, self.namespace, evidence),
            around=tuple(assembly.site_rows[site] for site in around),
            went_on=frozenset(map(assembly.op_of, self.recorder.handled_failures(ended_by))),
        )
        return Recorded(self._completed(assembly.trace), snapshot)

    def _completed(self, trace: TraceData) -> TraceData:
        for observer in self.recorder.observers.values():
            try:
                trace = observer.complete(trace)
            except Exception as fault:  # noqa: BLE001 (the trace has all else)
                self.recorder.fault(fault)
                trace = replace(trace, notes=tuple(self.recorder.noted()))
        return trace

    def _end_of_gap(self, assembly: Assembly) -> int:
        """Return the first op of the trace, of any thread, after the last one before a gap; -1 without a gap."""
        gap = self.recorder.gap
        return -1 if gap < 0 else min(assembly.op_of(gap), assembly.op_of(gap - 1) + 1)

    def _add_refused(self, error: BaseException, site: int) -> None:
        """Add a row for a call that torch refused before there was an op."""
        call = errors_before_dispatch.failing_call(error)
        if call is None:
            return
        state = self.recorder.threads[0]
        rows: list[int] = []
        self.recorder.append_rows(call.tensors, rows)
        are_recorded = self._sampler is None or not self._sampler.off
        with errors_before_dispatch.in_calls_of(error, state, self.modules, are_recorded=are_recorded):
            self.recorder.note_refusal(state, call.name, site, rows, error)


def _rank(known: int) -> int:
    """Return this process's rank in its job; the one known before where it cannot be found out."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank()
    rank = rank_of_job()
    return known if rank is None or known >= 0 else rank


def _frames_of(error: BaseException | None, origin: BaseException | None) -> list[tuple[int, FrameType]]:
    """Return the frames outside of torch and the standard library, innermost first, with their sites.

    Those of `origin`, the exception that the op raised, come below those of the ones that were raised in its place.
    """
    if error is None or origin is None:
        return []
    raised = [*takewhile(lambda each: each is not origin, chain_of(error)), origin]
    entries = errors_before_dispatch.joined(map(entries_of, raised))
    return sites.of_frames((entry.tb_frame, entry.tb_lasti) for entry in entries)


def _from_first_with_torch(frames: list[tuple[int, FrameType]]) -> list[tuple[int, FrameType]]:
    """Leave out the innermost frames of packages that know no tensors."""
    begin = next((index for index, (_, frame) in enumerate(frames) if errors_before_dispatch.knows_torch(frame)), 0)
    return frames[begin:]
