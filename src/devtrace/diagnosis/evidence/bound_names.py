"""Which names have a value at a line: by the source, and for a frame that still runs by its variables."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import Any

from devtrace.source.matching import names_in
from devtrace.source.parsing import FunctionNode, Source

_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_BLOCKS = ("body", "orelse", "finalbody")


def is_bound(name: str, source: Source, at: ast.AST, running: dict[str, Any], namespace: dict[str, Any]) -> bool:
    """Return whether a name has a value where a node begins.

    `running`: the variables of the frame that runs the node's function; empty if none does.
    """
    function = _running(source, at)
    while function is not None:
        if name in _parameters(function):
            return not any(_deletes(name, node) for node in ast.walk(function))
        bound = [each for each in _own_statements(function, source) if name in bound_by(each)]
        if bound and name not in _declared_global(function):
            return _reaches(bound, source, at) or (name in running and _all_above(bound, source, at))
        running, at = {}, function
        function = _running(source, function)
    bound = [each for each in _own_statements(source.tree, source) if name in bound_by(each)]
    if bound and source.function(at) is None and _is_of_the_module(at, source):
        was_there = _all_above(bound, source, at) or _is_of_an_earlier_cell(name, bound, source)
        return _reaches(bound, source, at) or (name in namespace and was_there)
    return name in namespace or hasattr(builtins, name)


def _running(source: Source, at: ast.AST) -> FunctionNode | None:
    """Return the function whose body has a node; its defaults and decorators are of the code around it."""
    function, inner = source.function(at), list(source.ancestors(at))
    while function is not None and not _is_in_body(function, inner):
        function = source.function(function)
    return function


def _is_in_body(function: FunctionNode, ancestors: list[ast.AST]) -> bool:
    body = function.body if isinstance(function.body, list) else [function.body]
    return any(part in ancestors for part in body)


def _is_of_the_module(at: ast.AST, source: Source) -> bool:
    """Return whether code runs when its file or cell does, and not in a function that is called later."""
    return not isinstance(at, FunctionNode) and source.function(at) is None


def _reaches(bound: list[ast.stmt], source: Source, at: ast.AST) -> bool:
    """Return whether one of these statements lies on every way to a node."""
    return any(_precedes(each, source, at) for each in bound)


def _precedes(statement: ast.stmt, source: Source, at: ast.AST) -> bool:
    around = list(source.ancestors(at))
    if statement in around:  # a loop or `with` binds its names for its own body
        inside = isinstance(statement, ast.For | ast.AsyncFor | ast.With | ast.AsyncWith)
        return inside and any(part in around for part in statement.body)  # type: ignore[attr-defined]
    if source.parent(statement) not in around or source.span(statement).end_line >= source.span(at).line:
        return False
    if isinstance(statement, ast.For | ast.AsyncFor | ast.If | ast.While | ast.Try):
        return False  # its body may not have run
    return _in_one_block(statement, source.parent(statement), around)


def _in_one_block(statement: ast.stmt, parent: ast.AST | None, around: list[ast.AST]) -> bool:
    blocks = (getattr(parent, name, None) for name in _BLOCKS)
    return any(
        statement in block and any(part in around for part in block) for block in blocks if isinstance(block, list)
    )


def _all_above(bound: list[ast.stmt], source: Source, at: ast.AST) -> bool:
    return all(source.span(each).end_line < source.span(at).line for each in bound)


def _is_of_an_earlier_cell(name: str, bound: list[ast.stmt], source: Source) -> bool:
    """Return whether the first statement of a cell that gives a name its value reads a former one: `x += 1`."""
    first = min(bound, key=lambda each: source.span(each).line)
    if isinstance(first, ast.AugAssign):
        return True
    return isinstance(first, ast.Assign) and name in {
        each.id for each in ast.walk(first.value) if isinstance(each, ast.Name)
    }


def _own_statements(body: ast.AST, source: Source) -> Iterator[ast.stmt]:
    """Yield the statements of a function or module, those of functions inside it left out."""
    own = body if isinstance(body, FunctionNode) else None
    for node in ast.walk(body):
        is_inner = node is not body and isinstance(node, ast.stmt)
        if isinstance(node, ast.stmt) and is_inner and source.function(node) is own:
            yield node


def bound_by(statement: ast.stmt) -> set[str]:
    """Return the variables that a statement gives a value, without those of statements inside it."""
    if isinstance(statement, _NAMED):
        return {statement.name}
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return {(alias.asname or alias.name).partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.Try):
        return {each.name for each in statement.handlers if each.name}
    own = [part for part in ast.iter_child_nodes(statement) if not isinstance(part, ast.stmt)]
    stored = (each for part in own for each in ast.walk(part) if isinstance(each, ast.Name))
    return {each.id for each in stored if isinstance(each.ctx, ast.Store)}


def _deletes(name: str, node: ast.AST) -> bool:
    return isinstance(node, ast.Delete) and name in names_in(node)


def _declared_global(function: FunctionNode) -> set[str]:
    found = (node for node in ast.walk(function) if isinstance(node, ast.Global | ast.Nonlocal))
    return {name for node in found for name in node.names}


def _parameters(function: FunctionNode) -> set[str]:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    every += [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return {each.arg for each in every}
