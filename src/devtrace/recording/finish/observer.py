"""What a feature notes while a recording runs, and what it adds to the trace when that ends.

class Regions(Observer):
    def install(self, patches, stack): patches.set(torch.autocast, "__enter__", ...)
    def add_rows(self, assembly): assembly.builder.append("autocasts", ...)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, ClassVar

from devtrace.features import offered
from devtrace.runtime.patches import Patches
from devtrace.trace.tables import TraceData

if TYPE_CHECKING:
    from devtrace.recording.columns.recorded_ops import RecordedOps
    from devtrace.recording.columns.tensor_rows import Array
    from devtrace.recording.finish.assemble import Assembly


class Observer:
    """One of a recording. Its methods are called in this order, and each of them may do nothing."""

    of_errors: ClassVar = False
    """True if it can say something of an error of a program that nobody recorded."""

    def __init__(self, recorder: RecordedOps, options: Mapping[str, Any]) -> None:
        """`options`: those of the recording, by name."""
        self.recorder = recorder

    def install(self, patches: Patches, stack: ExitStack) -> None:
        """Begin; what `stack` gets is undone at the end."""

    def note_error(self, error: BaseException) -> None:
        """An op raised, in the frame that calls this: all frames are still there."""

    def forget_ops(self, thread: int, numbers: Array, last: int) -> None:
        """Ops of a thread up to `last` were forgotten, except these numbers."""

    def end(self, errors: list[BaseException]) -> None:
        """Called when the program has ended, by an error and its causes."""

    def sites(self) -> Iterable[int]:
        """Return the sites that need a row."""
        return ()

    def add_rows(self, assembly: Assembly, rows: Mapping[int, int]) -> None:
        """Add to the trace that is being made; `rows` are those of sites."""

    def facts(self, assembly: Assembly) -> Iterable[object]:
        """Return what diagnosis may ask for by its class (`Snapshot.facts_of`)."""
        return ()

    def complete(self, trace: TraceData) -> TraceData:
        """Return the trace with what is reckoned from all of it."""
        return trace


def observers_of(
    recorder: RecordedOps, options: Mapping[str, Any], *, of_errors_alone: bool = False
) -> dict[str, Observer]:
    """Return an observer of each kind by the part of torch it needs; for an error that is over those `of_errors`."""
    kinds = offered("observer")
    return {part: kind(recorder, options) for part, kind in kinds.items() if kind.of_errors or not of_errors_alone}
