"""Births in cells that nobody recorded: the statement of a notebook's cells that made what a name holds.

The source tells, so a birth from here is inferred and never seen: the newest cell that gives the name a value, if that
value is computed there. A name that a loop, a `with` or a plain alias gives its value tells nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from devtrace.diagnosis.findings import Site
from devtrace.source.live_objects import CellText
from devtrace.source.matching import assigned_names

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_MADE = (ast.Call, ast.BinOp, ast.UnaryOp, ast.ListComp)


def birth(cells: Sequence[CellText], running: str, name: str, kind: str = "") -> Site | None:
    """Return the statement that made the tensor `name`: `mask`, `model.scale`. `kind` is the class of its owner.

    `running` is the file of the cell that runs now; a name that it gave a value has no birth here.
    """
    if running not in (cell.file for cell in cells):
        return None
    root, _, attribute = name.partition(".")
    for cell, node in _newest_first(cells):
        value = _given(node, name)
        if value is not None:
            return _site(cell, node) if isinstance(value, _MADE) and cell.file != running else None
        if root in _bound(node):
            break
    return _attribute(cells, kind, attribute)


def _newest_first(cells: Sequence[CellText]) -> Iterator[tuple[CellText, ast.stmt]]:
    for cell in reversed(cells):
        for node in reversed(list(_statements(_parsed(cell)))):
            yield cell, node


def _attribute(cells: Sequence[CellText], kind: str, attribute: str) -> Site | None:
    """Return the only statement of a class that gives `self` an attribute."""
    for cell, node in _newest_first(cells) if kind and attribute else ():
        if isinstance(node, ast.ClassDef) and node.name == kind:
            found = list(_given_to_self(node, attribute))
            value = _given(found[0][0], found[0][1]) if len(found) == 1 else None
            return _site(cell, found[0][0], found[0][2]) if isinstance(value, _MADE) else None
    return None


def _given_to_self(owner: ast.ClassDef, attribute: str) -> Iterator[tuple[ast.stmt, str, str]]:
    for function in owner.body:
        if isinstance(function, ast.FunctionDef) and function.args.args:
            name = f"{function.args.args[0].arg}.{attribute}"
            for node in ast.walk(function):
                if isinstance(node, ast.stmt) and _given(node, name) is not None:
                    yield node, name, f"{owner.name}.{function.name}"


def _parsed(cell: CellText) -> list[ast.stmt]:
    try:
        return ast.parse(cell.text).body
    except (SyntaxError, ValueError, RecursionError):
        return []


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield statements in the order of the source, those in loops and conditions too, not those of functions."""
    for node in body:
        yield node
        if not isinstance(node, _SCOPES):
            inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
            yield from _statements(inner)


def _given(node: ast.stmt, name: str) -> ast.expr | None:
    """Return the value that an assignment gives a name, None for no value."""
    if isinstance(node, ast.AnnAssign):
        return node.value if ast.unparse(node.target) == name else None
    if not isinstance(node, ast.Assign):
        return None
    for target in node.targets:
        if ast.unparse(target) == name:
            return node.value
        if isinstance(target, ast.Tuple | ast.List) and name in map(ast.unparse, target.elts):
            return _part(node.value, target, name)
    return None


def _part(value: ast.expr, target: ast.Tuple | ast.List, name: str) -> ast.expr:
    """Return `f()` for `b` of `a, b = 1, f()`, and of `a, b = f()`."""
    if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
        return value.elts[[ast.unparse(each) for each in target.elts].index(name)]
    return value


def _bound(node: ast.stmt) -> set[str]:
    """Return the variables that a statement gives a value, without those of statements inside it."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
    own = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]
    return set(assigned_names(*own))


def _site(cell: CellText, node: ast.stmt, function: str = "") -> Site:
    shift = cell.first - 1
    end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
    text = ast.get_source_segment(cell.text, node) or ""
    return Site(
        cell.file, node.lineno + shift, node.col_offset, end_line + shift, end_column, function, text,
        cell.count, cell.cell_id,
    )  # fmt: skip
