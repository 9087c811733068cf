"""Below `x = x.to(device)`: `y = y.to(device)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.fixes.fix import Fix, code_at, frame_of, is_assignable, moved_below, suggested
from devtrace.words.catalogue import sentence


def move_beside_neighbour(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Repeat the line that moved its neighbour, for the odd tensor and with the same arguments."""
    found, frame = code_at(case, verdict.moved), frame_of(case, verdict.name)
    if found is None or frame is None or verdict.name is None or not isinstance(found.statement, ast.Assign):
        return
    call, path = found.node, verdict.name.code
    if (
        not isinstance(call, ast.Call)
        or not isinstance(call.func, ast.Attribute)
        or found.function is not frame.function
    ):
        return
    if path is None or not is_assignable(verdict.name):
        return
    if verdict.name.last.owner is None and any(name.last.owner is not None for name in case.names):
        return  # something else keeps what the variable held
    arguments = ", ".join(found.code.text(part) for part in (*call.args, *call.keywords))
    new = f"{path} = {path}.{call.func.attr}({arguments})"
    moved = moved_below(case, frame, found.line_below - 1, verdict.name)
    edit = found.code.below(found.statement, new)
    yield from suggested(sentence("fixed.beside", code=new), edit, moved=moved)
