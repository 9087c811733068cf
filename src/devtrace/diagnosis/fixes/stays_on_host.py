"""No tensor moves above a call that takes it on the CPU only: the lengths of `pack_padded_sequence`, `x.numpy()`."""

from __future__ import annotations

from collections.abc import Iterator

from devtrace.diagnosis.evidence.case import Case
from devtrace.diagnosis.evidence.cpu_only import taken_on_host
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.trace_queries import HOST
from devtrace.diagnosis.findings import Edit
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.source.matching import calls_in
from devtrace.source.safe_values import evaluate


def moves_what_stays(case: Case, fix: Fix) -> bool:
    """Return whether an edit would bring to the device what a line further up in a live frame takes on the CPU."""
    if case.expected_device == HOST:
        return False
    base = case.queries.base
    bases = {base(moved.row) for moved in fix.moved}
    numbers = range(len(case.snapshot.frames))
    read = (FailingFrame.reading(case.snapshot, number, case.expected_device) for number in numbers)
    return any(
        base(row) in bases and any(_comes_before(edit, frame, line) for edit in fix.edits)
        for frame in read
        if frame is not None
        for line, row in _taken_above(frame)
    )


def _taken_above(frame: FailingFrame) -> Iterator[tuple[int, int]]:
    """Yield the lines above a frame's own that take a tensor on the CPU only, with its row."""
    for call in calls_in(frame.body):
        line, taken = frame.source.span(call).line, taken_on_host(call)
        if taken is not None and line < frame.line:
            row = frame.snapshot.row(evaluate(taken, frame.scope()))
            if row is not None:
                yield line, row


def _comes_before(edit: Edit, frame: FailingFrame, line: int) -> bool:
    """Return whether an edit is above a line of a frame's function, or in another function."""
    span = frame.source.span(frame.body) if frame.function is not None else None
    first, last = (span.line, span.end_line) if span is not None else (1, edit.line)
    return edit.file != frame.source.file or not first <= edit.line <= last or edit.line < line
