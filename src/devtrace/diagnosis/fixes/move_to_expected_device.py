"""`.to(first)`, `.cuda()` or `.cpu()` that made the tensor what it is becomes `.to(second)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.fixes.fix import Fix, Moved, code_at, frame_at, suggested
from devtrace.source.matching import match_code
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line


def move_to_expected_device(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Give the move that sent the tensor away the expected device."""
    if verdict.sent_by is None or verdict.module is not None:
        return
    found, frame = code_at(case, verdict.sent_by.site), frame_at(case, verdict.sent_by.site)
    call = match_code("$x.$move(...)", found.node) if found is not None else None
    if found is None or frame is None or call is None or call["move"] not in case.queries.move_methods:
        return
    if not isinstance(found.statement, ast.Assign | ast.Return) or found.statement.value is not found.node:
        return
    line = found.code.source.span(found.node).line
    in_module = access_paths.is_module(frame.variables.get("self"))
    device = frame.device_code(line, found.node) if in_module else frame.setup_device_code(line)
    if not device:
        return
    new = f"{found.code.text(call['x'])}.to({device})"
    moved = [Moved(verdict.sent_by.result, verdict.sent_by.op)]
    edit = found.code.replaced(found.node, new)
    yield from suggested(sentence("fixed.put-there", code=one_line(new)), edit, moved=moved)
