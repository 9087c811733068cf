"""Loops around a line, in its own function, and the variables of that function."""

from __future__ import annotations

import ast

from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.source.flow import LOOPS, shared_names, values_given
from devtrace.source.matching import is_read, nodes_of
from devtrace.source.parsing import Source


def loops_around(found: SourceNode, kinds: tuple[type[ast.AST], ...] = LOOPS) -> list[ast.stmt]:
    """Return the loops around a site in its function, the innermost first."""
    source, function = found.source, found.source.function(found.node)
    outer = source.ancestors(found.node)
    return [each for each in outer if isinstance(each, kinds) and source.function(each) is function]  # type: ignore[misc]


def uses_of(found: SourceNode, name: str) -> list[ast.Name] | None:
    """Return the places of a function that name a variable, in order; None of a variable that others see too."""
    body = found.source.function(found.node) or found.source.tree
    uses = [node for node in nodes_of(ast.Name, body) if node.id == name]
    return sorted(uses, key=found.source.span) if name not in shared_names(body) else None


def assigned_to(found: SourceNode, name: str) -> list[ast.expr | None]:
    """Return what each statement of a function gives to a variable; None of what is no simple assignment.

    `a, b = 0.0, []` gives to both.
    """
    stores = [use for use in uses_of(found, name) or () if not is_read(use)]
    return [value_given(found.source, each) for each in stores]


def value_given(source: Source, name: ast.Name) -> ast.expr | None:
    """Return the value that a simple assignment gives a variable."""
    statement = source.statement(name)
    return values_given(source, statement).get(name.id) if statement is not None else None
