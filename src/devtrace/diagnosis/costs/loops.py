"""Loops around a line, in its own function, and the variables of that function."""

from __future__ import annotations

import ast
from itertools import takewhile

from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.source.flow import LOOPS, binds, rounds, shared_names, values_given
from devtrace.source.matching import called_name, is_read, match_code, names_in, nodes_of
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


def are_taken_one_by_one(found: SourceNode) -> bool:
    """Return whether a loop goes through the values that code reads, or takes them by an index, one at a time."""
    source, around = found.source, loops_around(found)[:1]
    uses = [use for use in results_of(found) if all(loop in source.ancestors(use) for loop in around)]
    return any(_is_gone_through(source, use) or _is_indexed(source, use) for use in uses)


def results_of(found: SourceNode) -> list[ast.AST]:
    """Return the code that reads a value, and where the function uses the variables that its statement makes of it."""
    uses = [use for name in binds(found.statement) for use in uses_of(found, name) or () if is_read(use)]
    return [found.node, *uses]


def _is_gone_through(source: Source, use: ast.AST) -> bool:
    calls = takewhile(lambda outer: called_name(outer) or getattr(outer, "attr", ""), source.ancestors(use))
    around = [use, *calls]
    return any(each.iter in around for each in rounds(source, use))


def _is_indexed(source: Source, use: ast.AST) -> bool:
    """Return whether an inner loop takes an item at a time: `scores[at]`."""
    item = match_code("$values[$at]", source.parent(use))
    if item is None or item["values"] is not use:
        return False
    return any(not names_in(item["at"]).isdisjoint(names_in(each.target)) for each in rounds(source, use))
