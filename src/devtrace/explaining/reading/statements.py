"""Statements of a function: which give a name, an attribute or an item its value, and with what.

A target inside a tuple has a position: `b` of `a, (b, c) = f()` is (1, 0).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType
from typing import Final, NamedTuple

from devtrace.source.matching import called_name
from devtrace.source.parsing import Source
from devtrace.source.vocabulary import is_move

FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
LOOPS: Final = (ast.For, ast.AsyncFor)
COMPREHENSIONS: Final = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
Position = tuple[int, ...]


class Assigned(NamedTuple):
    """An expression that gives something its value. `loops`: it is what a loop goes through."""

    value: ast.expr
    position: Position
    line: int
    loops: bool = False


@lru_cache(maxsize=1024)
def body_of(source: Source, code: CodeType) -> ast.AST:
    """Return the function that a code object runs; of a file, a cell or a class the whole tree."""
    if code.co_name == "<module>":
        return source.tree
    functions = (node for node in ast.walk(source.tree) if isinstance(node, FUNCTIONS))
    return next((node for node in functions if _is_code_of(node, source, code)), source.tree)


def _is_code_of(node: ast.AST, source: Source, code: CodeType) -> bool:
    decorators = getattr(node, "decorator_list", [])
    first = min(source.span(each).line for each in (node, *decorators))
    return first == code.co_firstlineno and getattr(node, "name", "<lambda>") == code.co_name


def statements(body: ast.AST) -> Iterator[ast.stmt]:
    """Yield a body's own statements, in the order of the source, not those of functions and classes in it."""
    for name in ("body", "orelse", "handlers", "finalbody"):
        inner = getattr(body, name, [])
        for node in inner if isinstance(inner, list) else ():
            if isinstance(node, ast.ExceptHandler):
                yield from statements(node)
            elif isinstance(node, ast.stmt):
                yield node
                if not isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                    yield from statements(node)
    for case in getattr(body, "cases", []):
        yield from statements(case)


def targets(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr, bool]]:
    """Yield what a statement gives a value to, with the value, and whether that is gone through by a loop."""
    if isinstance(statement, ast.Assign):
        yield from ((target, statement.value, False) for target in statement.targets)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield statement.target, statement.value, False
    elif isinstance(statement, ast.With | ast.AsyncWith):
        for item in statement.items:
            if item.optional_vars is not None:
                yield item.optional_vars, item.context_expr, False
    elif isinstance(statement, LOOPS):
        yield statement.target, statement.iter, True
    for node in ast.iter_child_nodes(statement):
        for inner in ast.walk(node) if isinstance(node, ast.expr) else ():
            if isinstance(inner, ast.NamedExpr):
                yield inner.target, inner.value, False


def assignments(source: Source, body: ast.AST, name: str) -> list[Assigned]:
    """Return what the statements of a body give a variable, in the order of the source."""
    return [
        Assigned(value, position, source.span(statement).line, loops)
        for statement in statements(body)
        for target, value, loops in targets(statement)
        if (position := position_of_name(target, name)) is not None
    ]


def nearest_first(found: list[Assigned], line: int) -> list[Assigned]:
    """Sort assignments: those above a line come first, the last of them at the head."""
    return sorted(found, key=lambda each: (each.line < line, each.line), reverse=True)


def position_of_name(target: ast.expr, name: str) -> Position | None:
    if isinstance(target, ast.Name):
        return () if target.id == name else None
    return _inside(target, [position_of_name(part, name) for part in _parts(target)])


def position_of_attribute(target: ast.expr, owner: str, name: str) -> Position | None:
    if isinstance(target, ast.Attribute):
        is_it = target.attr == name and isinstance(target.value, ast.Name) and target.value.id == owner
        return () if is_it else None
    return _inside(target, [position_of_attribute(part, owner, name) for part in _parts(target)])


def _parts(target: ast.expr) -> list[ast.expr]:
    return target.elts if isinstance(target, ast.Tuple | ast.List) else []


def _inside(target: ast.expr, parts: list[Position | None]) -> Position | None:
    return next(((index, *part) for index, part in enumerate(parts) if part is not None), None)


def parameters(body: ast.AST) -> list[str]:
    """Return the names of a function's parameters, positional ones first."""
    if not isinstance(body, FUNCTIONS):
        return []
    given = body.args
    return [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def unpacked(iterated: ast.expr, position: Position) -> tuple[ast.expr, Position]:
    """Return what a loop's target goes through: `b` of `for a, b in zip(x, y)` goes through y."""
    name = iterated.func.id if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) else ""
    if not isinstance(iterated, ast.Call) or not iterated.args or not position:
        return iterated, position
    if name == "zip" and position[0] < len(iterated.args):
        return iterated.args[position[0]], position[1:]
    if name == "enumerate" and position[0] == 1:
        return iterated.args[0], position[1:]
    return iterated, position


def is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def moves_not_kept(body: ast.AST) -> list[ast.Call]:
    """Return the calls of `x.to(device)` that are a statement of their own: they leave a tensor where it is."""
    calls = [each.value for each in statements(body) if isinstance(each, ast.Expr) and isinstance(each.value, ast.Call)]
    return [call for call in calls if is_move(called_name(call)) and isinstance(call.func, ast.Attribute)]
