"""`.to(first)`, `.cuda()` or `.cpu()` that made the tensor what it is becomes `.to(second)`."""

from __future__ import annotations

import ast

from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.fixes.fix import Fix, code_at, fix_if_complete, frame_at
from devtrace.source.matching import match_code
from devtrace.words.text_format import one_line


def move_to_expected_device(case: Case, verdict: Verdict) -> Fix | None:
    """Give the move that sent the tensor away the expected device."""
    if verdict.sent_by is None or verdict.module is not None:
        return None
    found, frame = code_at(case, verdict.sent_by.site), frame_at(case, verdict.sent_by.site)
    call = match_code("$x.$move(...)", found.node) if found is not None else None
    if found is None or frame is None or call is None or call["move"] not in case.queries.move_methods:
        return None
    if not isinstance(found.statement, ast.Assign | ast.Return) or found.statement.value is not found.node:
        return None
    line = found.code.source.span(found.node).line
    in_module = access_paths.is_module(frame.variables.get("self"))
    device = frame.device_code(line, found.node) if in_module else frame.setup_device_code(line)
    if not device:
        return None
    new = f"{found.code.text(call['x'])}.to({device})"
    return fix_if_complete(f"put it where it is needed: {one_line(new)}", found.code.replaced(found.node, new))
