"""A variable that a loop only fills: set above it, changed by one statement in it, and not looked at before its end."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Final

from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.source.parsing import Source

_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)


@dataclass(frozen=True)
class FilledInLoop:
    """`loop` is the outermost one that fills the variable; `start` is its value above it."""

    loop: ast.stmt
    start: ast.expr

    @classmethod
    def find(cls, found: SourceNode, name: str) -> FilledInLoop | None:
        """Return the variable that the statement of a site changes, if nothing else touches it meanwhile."""
        source, function = found.source, found.source.function(found.node)
        uses = _uses(source, function, name)
        if uses is None:
            return None
        for loop in reversed(_loops_around(found, function)):
            begin = source.span(loop).line
            above = [use for use in uses if source.span(use).line < begin]
            inside = [use for use in uses if _is_in(source, use, loop)]
            start = _value_given(source, above[-1]) if above else None
            if start is not None and inside and all(_is_in(source, use, found.statement) for use in inside):
                return cls(loop, start)
        return None


def _uses(source: Source, function: ast.AST | None, name: str) -> list[ast.Name] | None:
    """Return the places that name a variable, in order; None if they are not all of one function."""
    nodes = list(ast.walk(function or source.tree))
    if any(isinstance(node, ast.Global | ast.Nonlocal) and name in node.names for node in nodes):
        return None
    uses = [node for node in nodes if isinstance(node, ast.Name) and node.id == name]
    if any(source.function(use) is not function for use in uses):
        return None
    return sorted(uses, key=lambda use: source.span(use))


def _loops_around(found: SourceNode, function: ast.AST | None) -> list[ast.stmt]:
    """Return the loops around a site in its function, the innermost first."""
    outer = found.source.ancestors(found.statement)
    return [loop for loop in outer if isinstance(loop, _LOOPS) and found.source.function(loop) is function]


def _is_in(source: Source, node: ast.AST, around: ast.AST) -> bool:
    return any(outer is around for outer in source.ancestors(node))


def _value_given(source: Source, name: ast.Name) -> ast.expr | None:
    """Return the value that a simple assignment gives a variable, also `a, b = 0.0, []`."""
    statement = source.statement(name)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, value = statement.targets[0], statement.value
    if target is name:
        return value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return next((part for one, part in zip(target.elts, value.elts, strict=True) if one is name), None)
    return None
