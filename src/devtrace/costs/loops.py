"""Loops around a line, in its own function, and the variables of that function."""

from __future__ import annotations

import ast
from itertools import takewhile
from typing import Final

from devtrace.diagnosis.evidence.trace_queries import SourceNode
from devtrace.source.flow import LOOPS, binds, parameters, rounds, shared_names, values_given
from devtrace.source.matching import (
    assigned_names,
    called_name,
    calls_in,
    is_read,
    listed,
    match_code,
    names_in,
    nodes_of,
    variable,
)
from devtrace.source.parsing import Source

_ONE_MORE: Final = ("$n += 1", "$n = $n + 1")


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


def counter(found: SourceNode, read: ast.AST) -> str:
    """Return the variable that counts the rounds in which code is read, or "": `i` of `for i, x in enumerate(loader)`.

    An outer loop's variable counts them only where the inner loop goes through what each of its rounds has made.
    """
    for loop in loops_around(found):
        taken, target, body = getattr(loop, "iter", None), getattr(loop, "target", None), getattr(loop, "body", ())
        is_counted = taken is not None and not {"enumerate", "range"}.isdisjoint(map(called_name, calls_in(taken)))
        if target is not None and is_counted:
            return variable(listed(target)[0])
        counted = (match_code(pattern, each) for each in body for pattern in _ONE_MORE)
        if name := next((variable(each["n"]) for each in counted if each is not None), ""):
            return name
        of_a_round = names_in(target) - set(assigned_names(*body)) if target is not None else set()
        if not names_in(read) <= of_a_round:
            return ""
    function = found.source.function(found.node)
    return "step" if function is not None and "step" in parameters(function) else ""
