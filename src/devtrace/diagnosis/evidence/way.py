"""The way that the program went through a function, as the ops of its lines show it."""

from __future__ import annotations

import ast

import numpy as np

from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.source.matching import run_names
from devtrace.source.parsing import Source


def passed(frame: FailingFrame, line: int, birth: int) -> int:
    """Return the first op after the program last came below a line of this frame.

    The ops of the frame's own lines show its way. What was born between two of them was made by the line between.
    """
    ops, lines = _way(frame)
    for before, after in zip(range(len(ops) - 2, -1, -1), range(len(ops) - 1, 0, -1), strict=True):
        if _leads_past(line, lines[before], lines[after]):
            first, last = ops[before] + 1, ops[after]
            return birth + 1 if first <= birth < last and not _is_made_below(frame, line, birth) else first
    return ops[-1]


def _way(frame: FailingFrame) -> tuple[list[int], list[int]]:
    """Return the ops of this function's lines up to the error, with their lines; line 0 is where it begins.

    An op of the backward pass is no step back to the line that it differentiates: it counts to the call of backward.
    """
    queries, here = frame.snapshot.queries, frame.code.site
    sites = queries.trace.sites
    rows = (sites[id] for id in range(len(sites)))
    own = [row.line if (row.file, row.function) == (here.file, here.function) else -1 for row in rows]
    users = queries.cost_users[: queries.failed]
    lines = np.where(users >= 0, np.array([*own, -1])[users], -1)
    ops = np.flatnonzero(lines >= 0)
    return [-1, *ops.tolist(), max(queries.failed, 0)], [0, *lines[ops].tolist(), frame.line]


def _is_made_below(frame: FailingFrame, line: int, birth: int) -> bool:
    """Return whether the function that made a tensor is called below a line, and not up to it."""
    queries = frame.snapshot.queries
    site = queries.site(queries.trace.ops.number("site", birth)) if birth >= 0 else None
    if site is None or (site.file, site.function) == (frame.code.site.file, frame.code.site.function):
        return site is not None and site.line > line
    above, below = set[str](), set[str]()
    for statement in frame.statements():
        own = [part for part in ast.iter_child_nodes(statement) if not isinstance(part, ast.stmt)]
        called = set[str]().union(*map(run_names, own))
        if frame.source.span(statement).line <= frame.line:
            (above if frame.source.span(statement).line <= line else below).update(called)
    *around, maker = site.function.split(".")
    makers = {around[-1]} if maker == "__init__" and around else {maker}
    return bool(makers & _led_to(below, frame.source)) and not makers & _led_to(above, frame.source)


def _led_to(names: set[str], source: Source) -> set[str]:
    """Return the names of functions and classes, and of all that those of this file call."""
    bodies: dict[str, set[str]] = {}
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            outer = source.parent(node)
            name = outer.name if node.name == "__init__" and isinstance(outer, ast.ClassDef) else node.name
            bodies[name] = bodies.get(name, set()) | run_names(node)
    found, new = set(names), set(names)
    while new:
        new = set[str]().union(*(bodies.get(name, set()) for name in new)) - found
        found |= new
    return found


def _leads_past(line: int, before: int, after: int) -> bool:
    """Return whether the way from one line to another comes below a line; a way up is the next round of a loop."""
    return before <= line < after if before <= after else line >= before or line < after
