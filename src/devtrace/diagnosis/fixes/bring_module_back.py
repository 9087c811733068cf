"""`model.to(device)` after the line that sent the module away, or after the call of the function that did."""

from __future__ import annotations

import ast

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.findings import Site
from devtrace.diagnosis.fixes.fix import Fix, fix_if_complete, frame_of, registering_root
from devtrace.source.matching import called_names


def bring_module_back(case: Case, verdict: Verdict) -> Fix | None:
    """Move the module to the expected device again."""
    sent = case.queries.site(verdict.sent_by.site) if verdict.sent_by is not None else None
    if sent is None or verdict.module is None:
        return None
    for name in case.names:
        root, frame = registering_root(name), frame_of(case, name)
        found = _after_the_move(frame, root.code, sent) if frame and root and root.code else None
        if found is not None:
            return found
    return None


def _after_the_move(frame: FailingFrame, path: str, sent: Site) -> Fix | None:
    span = frame.source.span
    function = sent.function.rpartition(".")[2]
    for statement in frame.statements():
        if not isinstance(statement, ast.Assign | ast.Expr):
            continue
        here = sent.file == frame.code.site.file and span(statement).line <= sent.line <= span(statement).end_line
        if here or (function and function in called_names(statement)):
            device = frame.setup_device_code(span(statement).end_line + 1)
            if device:
                new = f"{path}.to({device})"
                return fix_if_complete(f"bring it back: {new}", frame.code.below(statement, new))
    return None
