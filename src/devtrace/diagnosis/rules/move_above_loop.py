"""`weights.to(device)` in a loop becomes `weights = weights.to(device)` above it, where that changes nothing else."""

from __future__ import annotations

import ast
from typing import Final

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.diagnosis.findings import Edit
from devtrace.source.matching import assigned_names, match_code, names_in, same_code

_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)


def move_above_loop(queries: TraceQueries, line: int) -> Edit | None:
    """Return the edit, if the variable is bound above the loop and nowhere else used as it was."""
    found, site = queries.source_node(line), queries.site(line)
    moved = match_code("$x.$move(...)", found.node) if found is not None else None
    if (
        found is None
        or site is None
        or moved is None
        or moved["move"] not in queries.move_methods
        or queries.package(line)
    ):
        return None
    loop, name = _outermost_loop(found), moved["x"]
    is_of_a_cell = site.cell is not None and found.source.function(found.node) is None  # another cell may use it
    if loop is None or is_of_a_cell or not isinstance(name, ast.Name) or not _is_safe(found, loop, name.id):
        return None
    code = Code(found.source, site)
    return code.above(loop, f"{name.id} = {code.text(found.node)}")


def _outermost_loop(found: SourceNode) -> ast.stmt | None:
    function = found.source.function(found.node)
    loops = [outer for outer in found.source.ancestors(found.statement) if isinstance(outer, _LOOPS)]
    return next((loop for loop in reversed(loops) if found.source.function(loop) is function), None)


def _is_safe(found: SourceNode, loop: ast.stmt, name: str) -> bool:
    """Return whether the variable has its value above the loop, and is from there on only moved as here.

    What the move itself is written with must be there above the loop, too.
    """
    source, function = found.source, found.source.function(found.node)
    body = function or source.tree
    begin = source.span(loop).line
    uses = [node for node in ast.walk(body) if isinstance(node, ast.Name) and node.id == name]
    above = [use for use in uses if source.span(use).line < begin and source.function(use) is function]
    later = [use for use in uses if use not in above]
    is_bound = name in _parameters(function) or any(isinstance(use.ctx, ast.Store) for use in above)
    changed = set(assigned_names(loop))
    return (
        is_bound
        and all(_is_moved_alike(found, use) for use in later)
        and not any(isinstance(node, ast.Global | ast.Nonlocal) and name in node.names for node in ast.walk(body))
        and not any(isinstance(inner, ast.Call) for inner in ast.walk(found.node) if inner is not found.node)
        and changed.isdisjoint(names_in(found.node))
    )


def _parameters(function: ast.AST | None) -> list[str]:
    arguments = getattr(function, "args", None)
    return [node.arg for node in ast.walk(arguments) if isinstance(node, ast.arg)] if arguments is not None else []


def _is_moved_alike(found: SourceNode, use: ast.Name) -> bool:
    attribute = found.source.parent(use)
    call = found.source.parent(attribute) if attribute is not None else None
    return call is not None and same_code(call, found.node)
