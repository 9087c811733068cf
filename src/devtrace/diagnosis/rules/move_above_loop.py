"""`weights.to(device)` in a loop becomes `weights = weights.to(device)` above it, where that changes nothing else."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.diagnosis.findings import Edit, Site
from devtrace.source.matching import assigned_names, match_code, names_in, same_code
from devtrace.source.parsing import Source, parse

_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)


def move_above_loop(queries: TraceQueries, line: int, target: str) -> Edit | None:
    """Return the edit, if the variable is bound above the loop and nowhere else used as it was.

    `target` is the device to which all copies of the line went, if it is one.
    """
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
    if loop is None or not isinstance(name, ast.Name) or not _is_safe(found, loop, name.id, _is_of_a_cell(found, site)):
        return None
    if _is_of_a_cell(found, site) and any(_uses_it_as_it_is(text, found, name.id) for text in _others(queries, site)):
        return None
    code = Code(found.source, site)
    moving = _move_above(found, code, loop, name.id, target)
    return code.above(loop, f"{name.id} = {moving}") if moving else None


def _is_of_a_cell(found: SourceNode, site: Site) -> bool:
    return site.cell is not None and found.source.function(found.node) is None


def _others(queries: TraceQueries, site: Site) -> Iterator[str]:
    """Yield the text of the other cells: they have the same variables."""
    for block in queries.trace.sources:
        if block.cell_id and block.cell_id != site.cell_id:
            yield block.text
    for cell in queries.live.cells if queries.live is not None else ():
        if cell.file != site.file:
            yield cell.text


def _uses_it_as_it_is(text: str, found: SourceNode, name: str) -> bool:
    """Return whether another cell uses the variable and does not move it as this one does."""
    source = parse(text)
    if source is None:
        return name in text
    loads = [
        n for n in ast.walk(source.tree) if isinstance(n, ast.Name) and n.id == name and n.ctx.__class__ is ast.Load
    ]
    return not all(_is_moved_alike(source, found.node, use) for use in loads)


def _move_above(found: SourceNode, code: Code, loop: ast.stmt, name: str, target: str) -> str:
    """Return the move as it can be written above the loop: as it is, else to the device that it named in the end."""
    if set(assigned_names(loop)).isdisjoint(names_in(found.node)):
        return code.text(found.node)
    to = match_code("$x.to($y.device)", found.node)
    return f'{name}.to("{target}")' if to is not None and target else ""


def _outermost_loop(found: SourceNode) -> ast.stmt | None:
    function = found.source.function(found.node)
    loops = [outer for outer in found.source.ancestors(found.statement) if isinstance(outer, _LOOPS)]
    return next((loop for loop in reversed(loops) if found.source.function(loop) is function), None)


def _is_safe(found: SourceNode, loop: ast.stmt, name: str, is_of_a_cell: bool) -> bool:
    """Return whether the variable has its value above the loop, and is from there on only moved as here.

    An earlier cell may have given it.
    """
    source, function = found.source, found.source.function(found.node)
    body = function or source.tree
    begin = source.span(loop).line
    uses = [node for node in ast.walk(body) if isinstance(node, ast.Name) and node.id == name]
    above = [use for use in uses if source.span(use).line < begin and source.function(use) is function]
    later = [use for use in uses if use not in above]
    is_bound = name in _parameters(function) or any(isinstance(use.ctx, ast.Store) for use in above)
    return (
        (is_bound or (is_of_a_cell and not above))
        and all(_is_moved_alike(source, found.node, use) for use in later)
        and not any(isinstance(node, ast.Global | ast.Nonlocal) and name in node.names for node in ast.walk(body))
        and not any(isinstance(inner, ast.Call) for inner in ast.walk(found.node) if inner is not found.node)
    )


def _parameters(function: ast.AST | None) -> list[str]:
    arguments = getattr(function, "args", None)
    return [node.arg for node in ast.walk(arguments) if isinstance(node, ast.arg)] if arguments is not None else []


def _is_moved_alike(source: Source, move: ast.AST, use: ast.Name) -> bool:
    attribute = source.parent(use)
    call = source.parent(attribute) if attribute is not None else None
    return call is not None and same_code(call, move)
