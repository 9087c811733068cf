"""`deep + stem` becomes `deep + stem.to(deep.device)`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FunctionType

from devtrace.diagnosis.evidence import origins
from devtrace.diagnosis.evidence.case import Case, Verdict
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.trace_queries import HOST
from devtrace.diagnosis.fixes.about_to_fail import is_combined
from devtrace.diagnosis.fixes.fix import Fix, Moved, failing_frame, suggested
from devtrace.source.matching import calls_in
from devtrace.source.parsing import read
from devtrace.source.safe_values import evaluate
from devtrace.words.catalogue import sentence
from devtrace.words.text_format import one_line


def move_at_use(case: Case, verdict: Verdict) -> Iterator[Fix]:
    """Move the tensor in the failing line; above it, if the function reads the tensor again."""
    frame = failing_frame(case)
    node = frame.node_of(case.odd_tensor) if frame is not None and not _writes_into_it(case) else None
    device = frame.device_beside(node) if frame is not None and node is not None else ""
    if frame is None or node is None or not device or _is_of_a_module(case) or _takes_the_work_away(case):
        return
    moved = [Moved(case.odd_tensor, case.op)]
    new = frame.code.moved_to(node, device)
    again = [other for other in frame.loads(node) if other is not node]
    if again and isinstance(node, ast.Name):
        line = f"{node.id} = {new}"
        edit = frame.code.above(frame.source_node.statement, line)
        yield from suggested(sentence("fixed.before-use", code=line), edit, moved=moved)
    changes: list[tuple[ast.AST, str]] = [(node, new)]
    changes += [(call, frame.code.moved_to(call, device)) for call in _made_alike(frame, node)]
    edit = frame.code.all_replaced(changes)
    yield from suggested(sentence("fixed.at-use", code=one_line(new)), edit, moved=moved)


def _made_alike(frame: FailingFrame, node: ast.expr) -> Iterator[ast.Call]:
    """Yield the line's other calls of functions that return what a factory made without a device: `fake_labels(n)`."""
    if not isinstance(node, ast.Call) or not _returns_a_new_tensor(node, frame):
        return
    for call in calls_in(frame.expression):
        if call is not node and _returns_a_new_tensor(call, frame) and is_combined(call, frame.source):
            yield call


def _returns_a_new_tensor(call: ast.Call, frame: FailingFrame) -> bool:
    function = evaluate(call.func, frame.scope())
    code = function.__code__ if type(function) is FunctionType else None
    source = read(code.co_filename) if code is not None else None
    body = source.function_at(code.co_firstlineno) if code is not None and source is not None else None
    returned = [node.value for node in ast.walk(body) if isinstance(node, ast.Return)] if body is not None else []
    return (
        source is not None
        and bool(returned)
        and all(
            value is not None and any(origins.is_factory_without_device(inner, source) for inner in calls_in(value))
            for value in returned
        )
    )


def _is_of_a_module(case: Case) -> bool:
    """Return whether a module owns the tensor: then the module is to move, with all that it has."""
    return any(name.last.kind in ("parameter", "buffer") for name in case.snapshot.names(case.odd_tensor))


def _takes_the_work_away(case: Case) -> bool:
    """Return whether it would bring a tensor to the CPU that nothing says is meant: the rest is on the accelerator."""
    words, frame = case.mismatch.words, failing_frame(case)
    return case.expected_device == HOST and (words is None or frame is None or words.file != frame.code.site.file)


def _writes_into_it(case: Case) -> bool:
    """Return whether the failing op writes into the odd tensor: a moved copy of it would be written in vain."""
    op = case.queries.op_name(case.op).removeprefix("aten.").partition(".")[0]
    inputs = case.queries.inputs(case.op)
    return op.endswith("_") and not op.endswith("__") and inputs[:1] == [case.odd_tensor]
