"""`kernel = tapered(size)` becomes `kernel = tapered(size).to(signal.device)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.fixes.fix import Fix, frame_of, moved_below, suggested
from devtrace.source.matching import match_code
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line


def move_where_made(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Move the value where it comes into the frame that uses it."""
    for name in reversed(case.names):
        frame = frame_of(case, name) if len(name.references) == 1 else None
        bound = [one for one in frame.bindings(name.text) if one is not frame.source_node.statement] if frame else []
        found = match_code("$variable = $value", bound[-1]) if bound else None
        if frame is None or found is None or not isinstance(found["variable"], ast.Name):
            continue
        device = frame.device_code(frame.source.span(bound[-1]).line, found["value"])
        if device:
            new = frame.code.moved_to(found["value"], device)
            edit = frame.code.replaced(found["value"], new)
            moved = moved_below(case, frame, frame.source.span(bound[-1]).end_line, name)
            yield from suggested(sentence("fixed.where-made", code=f"{name.text} = {one_line(new)}"), edit, moved=moved)
