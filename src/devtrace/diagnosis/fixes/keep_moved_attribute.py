"""`self.table[:n].to(x.device)` in each call: `self.table = self.table.to(x.device)` above it moves the table once."""

from __future__ import annotations

import ast
from typing import Final

from devtrace.diagnosis.edits import Code
from devtrace.diagnosis.evidence.trace_queries import SourceNode, TraceQueries
from devtrace.diagnosis.findings import Edit
from devtrace.source.matching import match_code
from devtrace.source.parsing import Source

_APART: Final = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.NamedExpr, ast.IfExp)


def attribute_moved(found: SourceNode) -> str:
    """Return the attribute of `self` that a line moves, or a part of it; an empty text for anything else."""
    moved = match_code("$x.to(...)", found.node)
    attribute = match_code("self.$name", _whole(moved["x"])) if moved is not None else None
    return str(attribute["name"]) if attribute is not None else ""


def keep_moved_attribute(queries: TraceQueries, line: int) -> Edit | None:
    """Return the edit, if all that the file does with the attribute is to move it so."""
    found, site = queries.source_node(line), queries.site(line)
    name = attribute_moved(found) if found is not None else ""
    if found is None or site is None or not name or queries.package(line):
        return None
    uses = [
        node
        for node in ast.walk(found.source.tree)
        if isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load)
    ]
    is_apart = any(isinstance(outer, _APART) for outer in found.source.ancestors(found.node))
    if is_apart or not isinstance(found.statement, ast.Assign | ast.Return | ast.Expr | ast.AnnAssign):
        return None
    if not isinstance(found.node, ast.Call) or not all(_is_moved(found.source, use) for use in uses):
        return None
    code = Code(found.source, site)
    return code.above(found.statement, f"self.{name} = self.{name}.{code.method_call(found.node)}")


def _whole(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Subscript):
        node = node.value
    return node


def _is_moved(source: Source, use: ast.Attribute) -> bool:
    """Return whether a use of the attribute, or of a part of it, is no more than the object of `.to(...)`."""
    outer: ast.AST | None = use
    while (
        isinstance(above := source.parent(outer) if outer is not None else None, ast.Subscript) and above.value is outer
    ):
        outer = above
    return isinstance(above, ast.Attribute) and match_code("$x.to(...)", source.parent(above)) is not None
