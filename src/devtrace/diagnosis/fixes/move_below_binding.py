"""Below `model = build()`: `model.to(device)`.

At the top of `for batch in loader:` it is `batch["x"] = batch["x"].to(device)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from devtrace.diagnosis.evidence import access_paths, origins
from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.fixes.fix import (
    Fix,
    frame_of,
    is_assignable,
    moved_below,
    registering_root,
    siblings_on_odd_device,
    suggested,
)
from devtrace.diagnosis.fixes.move_container import all_moved
from devtrace.source.matching import match_code
from devtrace.source.safe_values import evaluate
from devtrace.words.catalogue import sentence

FEW: Final = 3
"""So many items of a dict get a line each, which leaves it the same dict."""


def move_below_binding(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Below the line that gives the user's variable its value: move what it holds, if it holds it by then."""
    for name in [verdict.name, *case.names, *(name for _, name in case.roots)]:
        if name is not None and verdict.cause == "attached-after-move" and _binds_where_it_moves(case, verdict, name):
            continue
        if name is not None and len(name.references) > 1 and not _made_in_a_call(case, name):
            yield from _move_below_binding(case, name, [name, *siblings_on_odd_device(case, name)])
            yield from _move_below_binding(case, name, [name])


def _binds_where_it_moves(case: Case, verdict: Verdict, name: AccessPath) -> bool:
    """Return whether the line that gives the variable its value moves it too: what was attached came after it."""
    frame, moved = frame_of(case, name), case.queries.source_node(verdict.moved)
    bound = frame.bindings(name.references[0].text)[-1:] if frame is not None else []
    return frame is not None and moved is not None and moved.source is frame.source and bound == [moved.statement]


def _made_in_a_call(case: Case, name: AccessPath) -> bool:
    """Return whether a module's call made what is named, as it makes a cache; a lazy parameter was there before."""
    row = case.snapshot.row(name.last.value)
    if row is not None and name.last.kind in ("parameter", "buffer") and origins.was_materialized(case.queries, row):
        return False
    op = case.queries.producer(case.queries.base(row)) if row is not None else -1
    return op >= 0 and case.queries.trace.ops.number("call", op) >= 0


def _move_below_binding(case: Case, name: AccessPath, kin: list[AccessPath]) -> Iterator[Fix]:
    frame = frame_of(case, name)
    bound = frame.bindings(name.references[0].text)[-1:] if frame is not None else []
    if frame is None or not bound:
        return
    statement = _filling(case, name, frame, bound[0]) or bound[0]
    end_line = frame.source.span(statement).end_line
    device = frame.setup_device_code(end_line + 1)
    names = _moved_names(kin) if device else []
    lines = _container_line(names, device) or [_moving_line(each, device) for each in names]
    if not lines:
        return
    if isinstance(statement, ast.Assign | ast.Expr):
        moved = moved_below(case, frame, end_line, *names)
        edit = frame.code.below(statement, *lines)
        yield from suggested(sentence("fixed.below-line", code=lines[0], line=end_line), edit, moved=moved)
    if isinstance(statement, ast.With) or (isinstance(statement, ast.For) and _is_of_each(frame, statement, names[0])):
        moved = moved_below(case, frame, frame.source.span(statement.body[0]).line - 1, *names)
        edit = frame.code.into(statement, *lines)
        yield from suggested(sentence("fixed.top-of-block", code=lines[0]), edit, moved=moved)


def _is_of_each(frame: FailingFrame, loop: ast.For, name: AccessPath) -> bool:
    """Return whether the other rounds of a loop have what is named too: each has an object of the same class.

    Of a loop over anything but a list or tuple that is there, its batches are taken to be alike.
    """
    inner = match_code("enumerate($items)", loop.iter) or match_code("reversed($items)", loop.iter)
    items = evaluate(inner["items"] if inner is not None else loop.iter, frame.scope())
    if type(items) not in (list, tuple) or len(name.references) == 1:
        return True
    return len({type(each) for each in items}) == 1


def _filling(case: Case, name: AccessPath, frame: FailingFrame, bound: ast.stmt) -> ast.stmt | None:
    """Return the later statement of the same block that put the tensor there: `optimizer.load_state_dict(saved)`."""
    row = case.snapshot.row(name.last.value)
    found = case.queries.source_node(case.queries.born(case.queries.base(row))) if row is not None else None
    if found is None or found.source is not frame.source or not isinstance(found.statement, ast.Expr):
        return None
    beside = frame.source.parent(found.statement) is frame.source.parent(bound)
    line = frame.source.span(found.statement).line
    return found.statement if beside and frame.source.span(bound).end_line < line < frame.line else None


def _moved_names(kin: list[AccessPath]) -> list[AccessPath]:
    """Return the whole module that registers the first tensor, else the tensors themselves."""
    root = registering_root(kin[0])
    if root is not None:
        return [root] if root.code else []
    return [each for each in kin if each.code] if is_assignable(kin[0]) else []


def _container_line(names: list[AccessPath], device: str) -> list[str]:
    """Return the one line that moves all items of a list, tuple or dict, if that is what is named."""
    owner = names[0].prefix(len(names[0].references) - 1) if len(names) > 1 else None
    if owner is None or names[0].last.kind != "item" or not owner.code or not is_assignable(owner):
        return []
    items = names[0].last.owner
    if len(names) != len(items) or (type(items) is dict and len(items) <= FEW):
        return []
    moved = all_moved(owner.code, items, device)
    return [f"{owner.code} = {moved}"] if moved else []


def _moving_line(name: AccessPath, device: str) -> str:
    is_module = access_paths.is_module(name.last.value)
    return f"{name.code}.to({device})" if is_module else f"{name.code} = {name.code}.to({device})"
