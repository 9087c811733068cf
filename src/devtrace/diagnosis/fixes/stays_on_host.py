"""No tensor moves above a call that takes it on the CPU only: the lengths of `pack_padded_sequence`, `x.numpy()`."""

import ast
from collections.abc import Iterator
from functools import lru_cache

from devtrace.diagnosis.evidence.case import Case
from devtrace.diagnosis.evidence.cpu_only import taken_on_host
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.trace_queries import HOST
from devtrace.diagnosis.findings import Edit
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.source.matching import calls_in
from devtrace.source.parsing import Source
from devtrace.source.safe_values import evaluate


def moves_what_stays(case: Case, fix: Fix) -> bool:
    """Return whether an edit would bring to the device what a line further up in a live frame takes on the CPU."""
    if case.queries.of == "dtype" or case.expected_device == HOST:
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
    for line, taken in _taken_in(frame.source, frame.body):
        row = frame.snapshot.row(evaluate(taken, frame.scope())) if line < frame.line else None
        if row is not None:
            yield line, row


@lru_cache(maxsize=64)
def _taken_in(source: Source, body: ast.AST) -> list[tuple[int, ast.expr]]:
    """Return what the calls of a function take on the CPU only, with their lines; each suggested fix asks for it."""
    found = ((source.span(call).line, taken_on_host(call)) for call in calls_in(body))
    return [(line, taken) for line, taken in found if taken is not None]


def _comes_before(edit: Edit, frame: FailingFrame, line: int) -> bool:
    """Return whether an edit is above a line of a frame's function, or in another function."""
    span = frame.source.span(frame.body) if frame.function is not None else None
    first, last = (span.line, span.end_line) if span is not None else (1, edit.line)
    return edit.file != frame.source.file or not first <= edit.line <= last or edit.line < line
