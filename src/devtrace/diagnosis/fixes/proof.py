"""Proves edits before they are offered: each can be typed where it is, and the failing op runs with it.

    each name in it has a value at its line             source/flow.py
    what it moves was there when its line ran           `Moved.since`, and the tensor's birth
    the next round of a loop finds it moved too         next_round.py
    no line above takes what it moves on the CPU        stays_on_host.py
    it does not replace what an optimizer trains        a leaf that requires a gradient stays a leaf
    every input of the failing op is then together      replay.py

No code of the program runs for this.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from devtrace.diagnosis.edits import applied
from devtrace.diagnosis.evidence import access_paths
from devtrace.diagnosis.evidence.case import Case
from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.findings import Edit
from devtrace.diagnosis.fixes.fix import Fix, Moved
from devtrace.diagnosis.fixes.next_round import lasts
from devtrace.diagnosis.fixes.stays_on_host import moves_what_stays
from devtrace.source import parsing
from devtrace.source.flow import is_bound
from devtrace.source.matching import match_code
from devtrace.source.parsing import Source
from devtrace.source.safe_values import Scope, evaluate, instance_dict


def can_be_typed(case: Case, fix: Fix) -> bool:
    """Return whether each edit of a fix holds at its line, whatever the others do."""
    in_time = all(_is_there(case, moved) for moved in fix.moved)
    if not in_time or not names_have_values(case.snapshot, fix):
        return False
    return all(lasts(case, edit) for edit in fix.edits) and not moves_what_stays(case, fix)


def names_have_values(snapshot: FailureSnapshot, fix: Fix) -> bool:
    """Return whether the names that the edits bring in have a value at their lines."""
    return all(_resolves(snapshot, edit) for edit in fix.edits)


def _is_there(case: Case, moved: Moved) -> bool:
    """Return whether a tensor was made before the line that moves it ran."""
    return case.queries.producer(case.queries.base(moved.row)) <= moved.since


def _resolves(snapshot: FailureSnapshot, edit: Edit) -> bool:
    source = _source_of(snapshot, edit)
    if source is None:
        return False
    after = parsing.parse(applied(source.text, [edit], source.first, source.indent), source.file, source.first)
    if after is None:
        return False
    first = edit.line if edit.before else edit.line + 1
    new = _paths_in(after, first, first + edit.after.count("\n")) if edit.after else []
    known = {ast.unparse(path) for path in _paths_in(source, first, first + edit.before.count("\n"))}
    added = [path for path in new if ast.unparse(path) not in (known if edit.before else ())]
    running, namespace = _variables(snapshot, after, edit, first)
    moves = snapshot.queries.move_methods
    targets = list(_assigned(after, first, first + edit.after.count("\n"), moves))
    return (
        all(_has_value(path, after, running, namespace) for path in added)
        and not any(_is_trained(target, Scope(running, namespace)) for target in targets)
        and (bool(edit.before) or not any(_is_set_below(target, after) for target in targets))
    )


def _source_of(snapshot: FailureSnapshot, edit: Edit) -> Source | None:
    cells = [block.cell_id for block in snapshot.queries.trace.sources if block.file == edit.file]
    return snapshot.queries.read(edit.file, max(edit.line, 1), cells[0] if cells else "")


def _paths_in(source: Source, first: int, last: int) -> list[ast.expr]:
    """Return the names and the chains of attributes that lines read."""
    found: list[ast.expr] = []
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Load):
            is_whole = not isinstance(source.parent(node), ast.Attribute)
            if is_whole and first <= source.span(node).line <= last:
                found.append(node)
    return found


def _variables(
    snapshot: FailureSnapshot, after: Source, edit: Edit, line: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the variables of the frame that runs the edited function, and the names of its module."""
    inside = next((node for node in ast.walk(after.tree) if _begins_at(node, after, line)), after.tree)
    function = after.function(inside)
    shift = edit.after.count("\n") + 1 if not edit.before else edit.after.count("\n") - edit.before.count("\n")
    namespace: dict[str, Any] = {}
    for frame in snapshot.frames:
        if frame.f_code.co_filename != edit.file:
            continue
        namespace = namespace or dict(frame.f_globals)
        name = getattr(function, "name", "<lambda>") if function is not None else "<module>"
        first = after.span(function).line if function is not None else 1
        starts = {first, first - shift} | {first - len(getattr(function, "decorator_list", ()))}
        if frame.f_code.co_name == name and (function is None or frame.f_code.co_firstlineno in starts):
            return dict(frame.f_locals), dict(frame.f_globals)
    return {}, namespace or _namespace_of(snapshot, edit.file)


def _begins_at(node: ast.AST, source: Source, line: int) -> bool:
    return (
        isinstance(node, ast.stmt)
        and source.span(node).line <= line <= source.span(node).end_line
        and not any(
            isinstance(child, ast.stmt) and source.span(child).line <= line <= source.span(child).end_line
            for child in ast.iter_child_nodes(node)
        )
    )


def _namespace_of(snapshot: FailureSnapshot, file: str) -> dict[str, Any]:
    for module in list(sys.modules.values()):
        names = instance_dict(module)
        if names.get("__file__") == file:
            return dict(names)
    live = snapshot.queries.live
    return dict(live.namespace) if live is not None and live.namespace is not None else {}


def _has_value(path: ast.expr, after: Source, running: dict[str, Any], namespace: dict[str, Any]) -> bool:
    root: ast.AST = path
    while isinstance(root, ast.Attribute | ast.Subscript):
        root = root.value
    if not isinstance(root, ast.Name):
        return True  # an attribute of what a call returns
    if _is_of_a_comprehension(root, after):
        return True
    return is_bound(root.id, after, root, running, namespace)


def _is_of_a_comprehension(name: ast.Name, source: Source) -> bool:
    around = (
        each
        for each in source.ancestors(name)
        if isinstance(each, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp)
    )
    return any(
        isinstance(inner, ast.Name) and inner.id == name.id
        for each in around
        for generator in each.generators
        for inner in ast.walk(generator.target)
    )


def _assigned(source: Source, first: int, last: int, moves: frozenset[str]) -> Iterator[ast.expr]:
    """Yield `x` of each `x = y.to(d)` of some lines, whichever method moves it."""
    for node in ast.walk(source.tree):
        found = match_code("$target = $x.$move(...)", node)
        if found is not None and found["move"] in moves and first <= source.span(node).line <= last:
            yield found["target"]


def _is_trained(path: ast.expr, scope: Scope) -> bool:
    """Return whether a path leads to a leaf that requires a gradient: an optimizer would refuse its moved copy."""
    return access_paths.is_trained_leaf(evaluate(path, scope))


def _is_set_below(target: ast.expr, source: Source) -> bool:
    """Return whether a later line of the function gives the same attribute or item its value."""
    if not isinstance(target, ast.Attribute | ast.Subscript):
        return False
    body, step, line = source.function(target) or source.tree, _last_step(target), source.span(target).end_line
    stored = (
        node
        for node in ast.walk(body)
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store)
    )
    return any(source.span(node).line > line and _last_step(node) == step for node in stored)


def _last_step(node: ast.Attribute | ast.Subscript) -> str:
    return f".{node.attr}" if isinstance(node, ast.Attribute) else f"[{ast.unparse(node.slice)}]"


def all_moved(fixes: Iterable[Fix]) -> tuple[Moved, ...]:
    return tuple(dict.fromkeys(moved for fix in fixes for moved in fix.moved))
