"""The line that copies goes below the line that moves."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.way import Passed
from devtrace.diagnosis.fixes.fix import Fix, Moved, code_at, frame_of, suggested
from devtrace.source.matching import assigned_names, called_names, names_in
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line


def copy_after_move(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Swap the two lines, where nothing between them needs the copy."""
    found = code_at(case, verdict.moved)
    for name in case.names:
        frame = frame_of(case, name)
        bound = frame.bindings(name.references[0].text)[-1:] if frame is not None else []
        if frame is None or not bound or found is None or found.code.source is not frame.source:
            continue
        early, moving, code = bound[0], found.statement, frame.code
        if _may_swap(frame, early, moving) and not _asks_for(early, case.odd_device):
            text = code.text(early)
            edits = (code.removed(early), code.below(moving, *text.split("\n")))
            help = sentence("fixed.copy-after-move", line=one_line(text), move=one_line(code.text(moving)))
            line = frame.source.span(moving).end_line
            yield from suggested(help, *edits, moved=_made_at(case, frame, early, line))


def _made_at(case: Case, frame: FailingFrame, early: ast.stmt, line: int) -> Iterator[Moved]:
    """Yield the live tensors that a variable of the statement leads to and that are on the odd device."""
    names, passed = set(assigned_names(early)), Passed.below(frame, line)
    for tensor in case.snapshot.walk.tensors:
        row = case.snapshot.row(tensor)
        if row is None or case.queries.device(row) != case.odd_device:
            continue
        if any(n.frame == frame.number and n.references[0].key in names for n in case.snapshot.walk.names(tensor)):
            yield Moved(row, passed.since(case.queries.producer(case.queries.base(row))))


def _asks_for(statement: ast.stmt, device: str) -> bool:
    """Return whether a statement says itself where the copy is to be: `Average(model, device="cpu")`."""
    constants = (node.value for node in ast.walk(statement) if isinstance(node, ast.Constant))
    return device in constants or device in called_names(statement)


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
