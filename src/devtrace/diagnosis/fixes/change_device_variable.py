"""`device = "cuda"` becomes `device = x.device`, where all that the function makes with it belongs there."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.fixes.fix import Fix, Moved, code_at, frame_at, suggested
from devtrace.source.matching import called_name, keyword
from devtrace.source.vocabulary import MAKES
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line


def change_device_variable(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Give the variable by which the culprit was put on the odd device the expected one, if others use it too."""
    site = case.queries.trace.ops.number("site", case.origin.op) if case.origin.op >= 0 else -1
    found, frame = code_at(case, site), frame_at(case, site)
    call = _naming_call(found.node) if found is not None else None
    variable = _device_of(call) if call is not None else None
    if frame is None or not isinstance(variable, ast.Name):
        return
    bound = frame.bindings(variable.id)
    binding = bound[0] if len(bound) == 1 else None
    uses = [node for node in ast.walk(frame.body) if isinstance(node, ast.Name) and node.id == variable.id]
    read = [node for node in uses if isinstance(node.ctx, ast.Load)]
    if not isinstance(binding, ast.Assign) or len(read) < 2 or not all(_is_a_device(node, frame) for node in read):
        return
    device = frame.device_code(frame.source.span(binding).line, binding.value)
    edit = frame.code.replaced(binding.value, device) if device else None
    new = one_line(f"{variable.id} = {device}")
    yield from suggested(sentence("fixed.device-variable", code=new), edit, moved=_made_with(case, read, frame))


def _naming_call(node: ast.AST) -> ast.Call | None:
    """Return the call in a chain that names the device: of a factory, or `.to()`."""
    while isinstance(node, ast.Call | ast.Attribute | ast.Subscript):
        if isinstance(node, ast.Call) and _device_of(node) is not None:
            return node
        node = node.func if isinstance(node, ast.Call) else node.value
    return None


def _device_of(call: ast.Call) -> ast.expr | None:
    """Return the device that a call is given."""
    if called_name(call) == "to" and len(call.args) == 1:
        return call.args[0]
    return keyword(call, "device") if called_name(call) in (*MAKES, "to") else None


def _is_a_device(name: ast.Name, frame: FailingFrame) -> bool:
    """Return whether a name is read as the device of a call alone: `device=device`, `.to(device)`."""
    around = list(frame.source.ancestors(name))[1:3]
    call = next((each for each in around if isinstance(each, ast.Call)), None)
    return call is not None and _device_of(call) is name


def _made_with(case: Case, read: list[ast.Name], frame: FailingFrame) -> Iterator[Moved]:
    """Yield what the calls that read the variable put on the odd device."""
    queries = case.queries
    nodes = ((site, queries.source_node(site)) for site in range(len(queries.trace.sites)))
    calls = (
        (site, _naming_call(made.node)) for site, made in nodes if made is not None and made.source is frame.source
    )
    sites = [site for site, call in calls if call is not None and _device_of(call) in read]
    for op in np.flatnonzero(np.isin(queries.trace.ops.ints("site")[: case.op], sites)).tolist():
        rows = (row for row in queries.outputs(op) if queries.device(row) == case.odd_device)
        yield from (Moved(row, op + 1) for row in rows)
