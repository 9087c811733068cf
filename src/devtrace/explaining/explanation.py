"""Makes the trace of an error that nobody recorded: a recording that never ran.

It has rows for every tensor that the error's frames lead to, and one op that failed. Modules and moves come from the
hooks, open calls from torch's own `_call_impl` frames.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from types import FrameType
from typing import Any, Final

import torch

from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.access_paths import Walk
from devtrace.explaining.stack import Stack
from devtrace.recording.columns import sites, stamps
from devtrace.recording.columns.process_history import Stamp, history
from devtrace.recording.context import hooks
from devtrace.recording.context.modules import Modules
from devtrace.recording.context.optimizers import Optimizers
from devtrace.recording.finish.assemble import assemble
from devtrace.recording.finish.names import Named
from devtrace.recording.hot.recorder import Recorder, thread_name
from devtrace.runtime.quiet import Quiet, is_tensor
from devtrace.source import parsing, safe_values
from devtrace.source.live_objects import Live
from devtrace.source.safe_values import Scope
from devtrace.trace.tables import TraceData

NOT_SEEN: Final = "it did not see this code run: what was before the error is read from the source"


@dataclass(frozen=True, slots=True)
class Explained:
    """A trace with the failed op, and what diagnosis needs of the live program."""

    trace: TraceData
    live: Live


def explained(
    path: Sequence[BaseException], namespace: Mapping[str, Any] | None, simulated: Callable[[str], bool]
) -> Explained:
    """Return the trace of the last exception of a path, to be diagnosed while the frames are there."""
    return _Explanation(path, namespace).run(simulated)


class _Explanation:
    def __init__(self, path: Sequence[BaseException], namespace: Mapping[str, Any] | None) -> None:
        self.error = path[-1]
        self.stack = Stack.of(path)
        self.frames = self.stack.sited()
        self.namespace = namespace
        self.recorder = Recorder(10_000)
        self.recorder.first_tick = next(history.ticks)
        self.modules = Modules(self.recorder)
        self.optimizers = Optimizers(self.recorder)
        self.state = self.recorder.follow(thread_name())
        self.walk = Walk(self._variables())

    def _variables(self) -> list[Any]:
        variables = [access_paths.roots(frame) for _, frame in self.frames]
        given = self.namespace
        if given is not None and not any(frame.f_globals is given for _, frame in self.frames):
            variables.append({name: (value, "global") for name, value in given.items() if name[:1] != "_"})
        return variables

    def run(self, simulated: Callable[[str], bool]) -> Explained:
        before = [(tensor, stamps.get(tensor)) for tensor in self.walk.tensors]
        try:
            with Quiet():
                return self._run(simulated)
        finally:
            _restore(before)

    def _run(self, simulated: Callable[[str], bool]) -> Explained:
        for tensor in self.walk.tensors:
            self.recorder.gather(tensor, [])
        self._fail()
        named = Named(self.recorder.rows, self.namespace)
        named.collect(self.modules, hooks.moves(), self.optimizers)
        self.recorder.note(NOT_SEEN)
        done = assemble(
            self.recorder,
            self.modules,
            named,
            title="",
            simulated=simulated,
            extra_sites=[site for site, _ in self.frames],
            producer=f"devtrace {version('devtrace')}",
        )
        rows, row_of = done.site_rows, done.tensors.row_of
        frames = tuple((rows[site], frame) for site, frame in self.frames)
        known = {id(tensor): row_of(self.recorder.rows.row_of(tensor)) for tensor in self.walk.tensors}
        return Explained(
            done.trace,
            Live(
                frames,
                self.namespace,
                lambda tensor: known.get(id(tensor)) if is_tensor(tensor) else None,
                cells=sites.cells_so_far(),
                walk=self.walk,
                was_read=True,
            ),
        )

    def _fail(self) -> None:
        """Record the op that failed, with the tensors that its line mentions."""
        rows: list[int] = []
        site = self.frames[0][0] if self.frames else sites.NOWHERE
        for value in _values(self.stack.levels[-1].frame, self.stack.levels[-1].instruction) if self.frames else ():
            self.recorder.gather(value, rows)
        self.recorder.failures.clear()
        _refused(self.recorder, self.state, "unknown", site, list(dict.fromkeys(rows)), self.error)


def _values(frame: FrameType, instruction: int) -> list[Any]:
    source = parsing.read(frame.f_code.co_filename)
    node = source.node_at(parsing.span_at(frame.f_code, instruction)) if source is not None else None
    if source is None or node is None:
        return []
    return [found.value for found in safe_values.values(node, source, Scope.of(frame)) if is_tensor(found.value)]


def _refused(recorder: Recorder, state: Any, name: str, site: int, rows: list[int], error: BaseException) -> None:
    with torch.no_grad():
        recorder.refused(state, name, site, rows, error)


def _restore(before: list[tuple[Any, Stamp]]) -> None:
    for tensor, stamp in before:
        stamps.put(tensor, stamp)
