"""`model.to(device)` after the line that sent the module away, or after the call of the function that did."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.findings import Site
from devtrace.diagnosis.fixes.fix import Fix, frame_of, moved_below, registering_root, suggested
from devtrace.source.matching import called_names
from devtrace.words.catalogue import sentence


def bring_module_back(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Move the module to the expected device again."""
    sent = case.queries.site(verdict.sent_by.site) if verdict.sent_by is not None else None
    if sent is None or verdict.module is None:
        return
    for name in case.names:
        root, frame = registering_root(name), frame_of(case, name)
        if frame is not None and root is not None:
            yield from _after_the_move(case, frame, root, sent)


def _after_the_move(case: Case, frame: FailingFrame, root: AccessPath, sent: Site) -> Iterator[Fix]:
    span = frame.source.span
    function = sent.function.rpartition(".")[2]
    for statement in frame.statements():
        if not isinstance(statement, ast.Assign | ast.Expr):
            continue
        here = sent.file == frame.code.site.file and span(statement).line <= sent.line <= span(statement).end_line
        if here or (function and function in called_names(statement)):
            line = span(statement).end_line
            device = frame.setup_device_code(line + 1)
            if device and root.code:
                new = f"{root.code}.to({device})"
                moved = moved_below(case, frame, line, root)
                yield from suggested(
                    sentence("fixed.bring-back", code=new), frame.code.below(statement, new), moved=moved
                )
