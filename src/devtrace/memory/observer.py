"""Watches the memory of devices while a recording runs: how high it gets, and who holds it when it ends."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

from devtrace.memory import growth_samples
from devtrace.memory.growth_samples import Heights
from devtrace.memory.shortage_recorder import Shortages
from devtrace.recording.columns.recorded_ops import RecordedOps
from devtrace.recording.finish.assemble import Assembled
from devtrace.recording.observer import Observer
from devtrace.runtime.observers import watching
from devtrace.runtime.patches import Patches
from devtrace.trace.tables import TraceData


class MemoryObserver(Observer):
    """Heights of all devices, and the shortage that ended the program."""

    def __init__(self, recorder: RecordedOps, asked: Mapping[str, Any]) -> None:
        super().__init__(recorder, asked)
        self.heights = Heights(recorder, bool(asked.get("memory")))
        self.shortages = Shortages(recorder)

    def install(self, patches: Patches, stack: ExitStack) -> None:
        self.heights.begin()
        watching.append(self.heights)
        stack.callback(watching.remove, self.heights)

    def note_error(self, error: BaseException) -> None:
        self.shortages.note_raised(error)

    def end(self, errors: list[BaseException]) -> None:
        self.shortages.end(errors)

    def sites(self) -> Iterable[int]:
        yield from self.shortages.sites()
        yield from growth_samples.sites_of(self.heights)

    def facts(self, done: Assembled) -> Iterable[object]:
        rows, rows_of = done.site_rows, done.tensors.rows_of
        yield from self.shortages.in_rows(rows, rows_of)
        yield from growth_samples.in_rows(self.heights, rows, rows_of, done.op_of)

    def complete(self, trace: TraceData) -> TraceData:
        return replace(trace, memory=growth_samples.curves_of(self.heights, trace, self.recorder.origin))
