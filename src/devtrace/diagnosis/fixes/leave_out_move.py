"""`[p.clone().cpu() for p in params]` becomes `[p.clone() for p in params]`: what it copies was there already."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.trace_queries import HOST
from devtrace.diagnosis.fixes.fix import Fix, Moved, code_at, suggested
from devtrace.source.matching import called_name, match_code
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line


def leave_out_move(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Leave a copy on the device of its original, which is the expected one. It stays a copy."""
    move = verdict.sent_by
    if move is None or verdict.module is not None or case.origin.row != case.row:
        return
    if case.queries.device(move.source) != case.expected_device:
        return
    found = code_at(case, move.site)
    original = _moved_to_the_cpu(found.node) if found is not None else None
    if found is None or original is None:
        return
    new = found.code.text(original)
    if not (isinstance(original, ast.Call) and called_name(original) == "clone"):
        new = found.code.called_on(original, "clone()")
    edit = found.code.replaced(found.node, new)
    yield from suggested(sentence("fixed.left-there", code=one_line(new)), edit, moved=[Moved(move.result, move.op)])


def _moved_to_the_cpu(node: ast.AST) -> ast.expr | None:
    """Return what is moved: `x` of `x.cpu()` and of `x.to("cpu")`."""
    call = match_code("$x.cpu()", node) or match_code("$x.to($device)", node)
    if call is None:
        return None
    device = call.get("device")
    is_there = device is None or (isinstance(device, ast.Constant) and device.value == HOST)
    found: ast.expr | None = call["x"] if is_there else None
    return found
