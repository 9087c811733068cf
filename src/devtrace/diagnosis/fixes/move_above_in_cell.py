"""`model.to(device)` above the failing statement of a cell, where an earlier cell made the model."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.fixes.fix import Fix, frame_of, moved_below, registering_root, suggested
from devtrace.words.catalogue import sentence


def move_above_in_cell(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Move a model that another cell made, in the cell that fails: it may come before the one that has the device."""
    for name in case.names:
        frame, root = frame_of(case, name), registering_root(name)
        if frame is None or root is None or not root.code or not _is_of_another_cell(frame, root.texts[0]):
            continue
        statement = _outermost(frame)
        line = frame.source.span(statement).line
        device = frame.setup_device_code(line)
        if device:
            code = f"{root.code}.to({device})"
            moved = moved_below(case, frame, line - 1, root)
            site = case.queries.site_in(frame.source, statement, frame.code.site)
            help = sentence("fixed.above-line", code=code, site=site)
            yield from suggested(help, frame.code.above(statement, code), moved=moved)


def _is_of_another_cell(frame: FailingFrame, variable: str) -> bool:
    in_cell = frame.code.site.cell is not None and frame.function is None
    return in_cell and variable in frame.variables and not frame.bindings(variable)


def _outermost(frame: FailingFrame) -> ast.stmt:
    """Return the whole loop or block of the cell around the failing line."""
    around = [each for each in frame.source.ancestors(frame.source_node.statement) if isinstance(each, ast.stmt)]
    return around[-1] if around else frame.source_node.statement
