"""The line that copies goes below the line that moves."""

from __future__ import annotations

import ast

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.fixes.fix import Fix, code_at, fix_if_complete, frame_of
from devtrace.source.matching import names_in
from devtrace.words.text_format import one_line


def copy_after_move(case: Case, verdict: Verdict) -> Fix | None:
    """Swap the two lines, where nothing between them needs the copy."""
    found = code_at(case, verdict.moved)
    for name in case.names:
        frame = frame_of(case, name)
        bound = frame.bindings(name.references[0].text)[-1:] if frame is not None else []
        if frame is None or not bound or found is None or found.code.source is not frame.source:
            continue
        early, moving, code = bound[0], found.statement, frame.code
        if _may_swap(frame, early, moving):
            text = code.text(early)
            edits = (code.removed(early), code.below(moving, *text.split("\n")))
            return fix_if_complete(f"move `{one_line(text)}` below `{one_line(code.text(moving))}`", *edits)
    return None


def _may_swap(frame: FailingFrame, early: ast.stmt, moving: ast.stmt) -> bool:
    """Return whether both are statements of one block, and nothing from the next line to the move needs the copy."""
    source = frame.source
    if not isinstance(early, ast.Assign) or source.parent(early) is not source.parent(moving):
        return False
    first, last = source.span(early), source.span(moving)
    if first.line >= last.line or first.end_line != first.line:
        return False
    between = [s for s in frame.statements() if first.line < source.span(s).line <= last.end_line]
    return names_in(*early.targets).isdisjoint(names_in(*between))
