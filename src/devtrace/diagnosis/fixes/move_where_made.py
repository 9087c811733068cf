"""`kernel = tapered(size)` becomes `kernel = tapered(size).to(signal.device)`.

Of `mu, nu = uniform(n), uniform(m)` both are moved, where both stayed behind.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.fixes.fix import Fix, frame_of, moved_below, suggested
from devtrace.source.matching import called_name, match_code
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line


def move_where_made(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Move the value where it comes into the frame that uses it."""
    for name in reversed(case.names):
        frame = frame_of(case, name) if len(name.references) == 1 else None
        bound = [one for one in frame.bindings(name.text) if one is not frame.source_node.statement] if frame else []
        values = dict(_values(bound[-1])) if bound else {}
        if frame is None or name.text not in values:
            continue
        span = frame.source.span(bound[-1])
        names = [name, *_made_alike(case, frame, name.text, values)]
        devices = [frame.device_code(span.line, values[each.text]) for each in names]
        if all(devices):
            nodes = [values[each.text] for each in names]
            new = [frame.code.moved_to(node, device) for node, device in zip(nodes, devices, strict=True)]
            edit = frame.code.all_replaced(list(zip(nodes, new, strict=True)))
            moved = moved_below(case, frame, span.end_line, *names)
            yield from suggested(
                sentence("fixed.where-made", code=f"{name.text} = {one_line(new[0])}"), edit, moved=moved
            )


def _values(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    """Yield the variables that a statement gives a value each, with the code of that."""
    found = match_code("$variable = $value", statement)
    match (found or {}).get("variable"), (found or {}).get("value"):
        case ast.Name(id=variable), ast.expr() as value:
            yield variable, value
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            yield from (
                (target.id, value)
                for target, value in zip(targets, values, strict=True)
                if isinstance(target, ast.Name)
            )


def _made_alike(case: Case, frame: FailingFrame, own: str, values: dict[str, ast.expr]) -> Iterator[AccessPath]:
    """Yield the variables beside one whose tensors the same function made, and which stayed behind too."""
    for variable, value in values.items():
        if variable == own or called_name(value) != called_name(values[own]) or not called_name(value):
            continue
        row = case.snapshot.row(frame.variables.get(variable))
        if row is not None and case.queries.device(row) == case.odd_device:
            names = (name for name in case.snapshot.names(row) if name.text == variable and name.frame == frame.number)
            yield from (name for name in [next(names, None)] if name is not None)
