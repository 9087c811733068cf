"""`inputs = inputs.to(device)` at the top of `for inputs, targets in loader:`, for all that the loop uses."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devtrace.diagnosis.evidence.access_paths import AccessPath
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.fixes.about_to_fail import is_combined
from devtrace.diagnosis.fixes.fix import Fix, frame_of, moved_below, suggested
from devtrace.source.matching import assigned_names
from devtrace.words.catalogue import sentence


def move_in_loop(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Move the loop's variables that hold tensors on the odd device and that the rest of the round computes with."""
    for name in case.names:
        frame = frame_of(case, name) if len(name.references) == 1 else None
        loop = _loop_of(frame, name.text) if frame is not None else None
        if frame is None or loop is None:
            continue
        if _is_written(loop, name.text):  # a moved copy would be written in vain
            continue
        line = frame.source.span(loop.body[0]).line - 1
        device = frame.setup_device_code(line + 1)
        names = [name, *_others(case, frame, loop, name)]
        lines = [f"{each.text} = {each.text}.to({device})" for each in names] if device else []
        edit = frame.code.into(loop, *lines) if lines else None
        moved = moved_below(case, frame, line, *names)
        yield from suggested(sentence("fixed.in-loop", code=lines[0] if lines else ""), edit, moved=moved)


def _loop_of(frame: FailingFrame, variable: str) -> ast.For | None:
    """Return the loop around the failing line that alone gives a variable its value."""
    bound = frame.bindings(variable)
    loop = bound[-1] if bound else None
    around = list(frame.source.ancestors(frame.source_node.statement))
    return loop if isinstance(loop, ast.For) and loop in around else None


def _is_written(loop: ast.For, variable: str) -> bool:
    """Return whether the loop writes into what a variable holds: `m.mul_(0.9)`, `m += g`, `m[i] = g`."""
    return any(_writes_into(node, variable) for statement in loop.body for node in ast.walk(statement))


def _writes_into(node: ast.AST, variable: str) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=method)) if _is_writer(method):
            return _innermost(owner) == variable or any(_innermost(each) == variable for each in node.args[:1])
        case ast.AugAssign(target=target):
            return _innermost(target) == variable
        case ast.Assign(targets=targets):
            return any(isinstance(each, ast.Subscript) and _innermost(each) == variable for each in targets)
    return False


def _is_writer(method: str) -> bool:
    return method.endswith("_") and not method.endswith("__")


def _innermost(node: ast.AST) -> str:
    """Return `m` of `m.data[0]` and of `m.mul(2)`."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return ""
    return node.id


def _others(case: Case, frame: FailingFrame, loop: ast.For, name: AccessPath) -> Iterator[AccessPath]:
    for variable in dict.fromkeys(assigned_names(loop.target)):
        row = case.snapshot.row(frame.variables.get(variable))
        if variable == name.text or row is None or case.queries.device(row) != case.odd_device:
            continue
        paths = (path for path in case.snapshot.names(row) if path.text == variable and path.frame == frame.number)
        path = next(paths, None)
        if path is not None and case.queries.dims[row] > 0 and _is_computed_with(frame, loop, variable):
            yield path


def _is_computed_with(frame: FailingFrame, loop: ast.For, variable: str) -> bool:
    """Return whether the loop reads a variable, always where it meets other tensors."""
    reads = [
        node
        for statement in loop.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and node.id == variable and isinstance(node.ctx, ast.Load)
    ]
    return bool(reads) and all(is_combined(node, frame.source) for node in reads)
