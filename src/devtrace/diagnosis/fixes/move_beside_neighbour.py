"""Below `x = x.to(device)`: `y = y.to(device)`; in a method, below `self.x = self.x.to(device)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devtrace.diagnosis.evidence.access_paths import is_trained_leaf
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.fixes.fix import (
    Fix,
    Moved,
    SiteCode,
    code_at,
    frame_of,
    is_assignable,
    moved_below,
    suggested,
)
from devtrace.diagnosis.fixes.register_on_module import assignments
from devtrace.source.matching import match_code
from devtrace.words.catalogue import sentence


def move_beside_neighbour(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Repeat the line that moved its neighbour, for the odd tensor and with the same arguments."""
    found, frame = code_at(case, verdict.moved), frame_of(case, verdict.name)
    if found is None or frame is None or verdict.name is None or not isinstance(found.statement, ast.Assign):
        return
    if not isinstance(found.node, ast.Call) or not isinstance(found.node.func, ast.Attribute):
        return
    if found.function is not frame.function:
        yield from _move_in_method(case, verdict, found)
        return
    path = verdict.name.code
    if path is None or not is_assignable(verdict.name):
        return
    if verdict.name.last.owner is None and any(name.last.owner is not None for name in case.names):
        return  # something else keeps what the variable held
    new = f"{path} = {path}.{found.code.method_call(found.node)}"
    moved = moved_below(case, frame, found.line_below - 1, verdict.name)
    edit = found.code.below(found.statement, new)
    yield from suggested(sentence("fixed.beside", code=new), edit, moved=moved)


def _move_in_method(case: Case, verdict: Verdict, found: SiteCode) -> Iterator[Fix]:
    """Repeat it in a method of the object that holds both: `to()` of the user's own class, which has returned."""
    neighbour = match_code("$self.$name = $self.$name.$move(...)", found.statement)
    row = case.snapshot.row(verdict.name.last.value) if verdict.name is not None else None
    if neighbour is None or row is None or verdict.name is None or verdict.move is None:
        return
    owner, key = verdict.name.last.owner, verdict.name.last.key
    here = [statement for _, statement in assignments(case.queries, owner, neighbour["name"])]
    if verdict.name.last.kind != "attribute" or not any(_is_written_at(found, each) for each in here):
        return
    if not is_assignable(verdict.name) or is_trained_leaf(verdict.name.last.value):
        return
    path = f"{found.code.text(neighbour['self'])}.{key}"
    new = f"{path} = {path}.{found.code.method_call(found.node)}"
    edit = found.code.below(found.statement, new)
    yield from suggested(sentence("fixed.beside", code=new), edit, moved=[Moved(row, verdict.move.op + 1)])


def _is_written_at(found: SiteCode, statement: ast.stmt) -> bool:
    """Return whether a class's own source, which may have been read another time, has the statement there."""
    return (statement.lineno, statement.col_offset) == (found.statement.lineno, found.statement.col_offset)
