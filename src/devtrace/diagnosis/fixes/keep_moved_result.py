"""`x.to(device)` on a line of its own becomes `x = x.to(device)`."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.dropped_results import dropped_result
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.fixes.fix import Fix, Moved, SiteCode, code_at, frame_of, moved_below, suggested
from devtrace.source.matching import assigned_names, match_code
from devtrace.source.object_walk import is_tensor
from devtrace.source.safe_values import evaluate
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line


def keep_moved_whole(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Assign what an object's own `to` returns: `batch = batch.to(device)`."""
    dropped = dropped_result(case) if verdict.dropped else None
    if dropped is None or verdict.move is None or verdict.name is None:
        return
    code, statement = dropped.frame.code, dropped.statement
    new = f"{verdict.name.references[0].text} = {code.text(statement)}"
    names = (verdict.name, *case.snapshot.beside(verdict.name))
    moved = moved_below(case, dropped.frame, dropped.frame.source.span(statement).end_line, *names)
    yield from suggested(sentence("fixed.keep-result", code=one_line(new)), code.replaced(statement, new), moved=moved)


def keep_moved_result(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Assign what the move returns."""
    found = code_at(case, verdict.moved) if verdict.dropped else None
    if found is None or verdict.move is None or not isinstance(found.statement, ast.Expr):
        return
    call = match_code("$x.$move(...)", found.statement.value)
    frame = frame_of(case, verdict.name)
    if call is None or _is_loop_variable(found, call["x"], frame):
        return
    moved = [(found.statement, call["x"]), *(_dropped_likewise(found, frame) if frame is not None else ())]
    kept = [f"{found.code.text(owner)} = {found.code.text(statement)}" for statement, owner in moved]
    edits = (found.code.replaced(statement, new) for (statement, _), new in zip(moved, kept, strict=True))
    rows = [case.row, *(_rows(case, frame, (owner for _, owner in moved)) if frame is not None else ())]
    since = [Moved(row, verdict.move.op) for row in rows]
    yield from suggested(sentence("fixed.keep-result", code=one_line(kept[0])), *edits, moved=since)


def _rows(case: Case, frame: FailingFrame, owners: Iterable[ast.expr]) -> Iterator[int]:
    """Yield the tensors that expressions hold now."""
    for owner in owners:
        row = case.snapshot.row(evaluate(owner, frame.scope()))
        if row is not None and case.queries.device(row) == case.odd_device:
            yield row


def _dropped_likewise(found: SiteCode, frame: FailingFrame) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """Yield the statements beside it that drop what the same move of another tensor returns, with that tensor."""
    source, move = found.code.source, match_code("$x.$move(...)", getattr(found.statement, "value", None))
    if move is None or source is not frame.source:
        return
    for each in frame.statements():
        other = match_code("$x.$move(...)", each.value) if isinstance(each, ast.Expr) else None
        beside = each is not found.statement and source.parent(each) is source.parent(found.statement)
        if other is None or not beside or other["move"] != move["move"] or not isinstance(other["x"], ast.Name):
            continue
        if is_tensor(frame.variables.get(other["x"].id)) and not _is_loop_variable(found, other["x"], frame):
            yield each, other["x"]


def _is_loop_variable(found: SiteCode, node: ast.expr, frame: FailingFrame | None) -> bool:
    """Return whether it is the variable of a loop that has ended: a new value for it would not reach the list."""
    source = found.code.source
    loops = [outer for outer in source.ancestors(found.statement) if isinstance(outer, ast.For)]
    if frame is not None and frame.source is source:
        loops = [loop for loop in loops if loop not in source.ancestors(frame.source_node.statement)]
    return isinstance(node, ast.Name) and any(node.id in assigned_names(loop.target) for loop in loops)
