"""Other tensors on the odd device in the failing line: it would fail over them next."""

import ast
from collections import Counter
from collections.abc import Iterator

from devtrace.diagnosis.evidence.case import Case
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.trace_queries import HOST
from devtrace.diagnosis.fixes.fix import failing_frame
from devtrace.source.matching import called_name
from devtrace.source.parsing import Source
from devtrace.source.safe_values import values
from devtrace.source.vocabulary import FACTS, TAKES_VALUES, leaves_device
from devtrace.trace.ids import TensorId


def rows_of_the_line(case: Case, moved: set[TensorId]) -> tuple[TensorId, ...]:
    """Return the tensors that the failing expression reads and that would still be on the odd device."""
    frame = failing_frame(case)
    if frame is None or case.odd_device != HOST:
        return ()
    read = [(each, case.odd_row(each.value)) for each in values(frame.expression, frame.source, frame.scope())]
    times = Counter(row for _, row in read)
    used_up = {row for row in _inputs_of_the_moved(case, frame, moved) if times[row] == 1}
    found = dict.fromkeys(
        row
        for each, row in read
        if row is not None and case.queries.dims[row] > 0 and not {row, case.queries.base(row)} & moved
        if row not in used_up and not _was_taken(each.node, frame)
        if is_combined(each.node, frame.source, frame.function)
    )
    return tuple(found)


def _was_taken(node: ast.AST, frame: FailingFrame) -> bool:
    """Return whether an inner call has already taken a tensor: `lengths` of `head(net(x, lengths))`."""
    around = list(frame.source.ancestors(node))[1:]
    failed = frame.source_node.node
    within = around[: around.index(failed)] if failed in around else []
    return any(isinstance(outer, ast.Call) for outer in within)


def _inputs_of_the_moved(case: Case, frame: FailingFrame, moved: set[TensorId]) -> Iterator[TensorId]:
    """Yield the sources of moved tensors in the failing statement: `w` of `x + (1 - w // 2).to(x.device)`."""
    queries, rows = case.queries, list(moved)
    for row in rows:
        op = queries.producer(row)
        made = queries.op_node(op)
        if made is not None and made.statement is frame.source_node.statement:
            yield from queries.inputs(op)
            rows += [each for each in queries.inputs(op) if each not in rows]


def is_combined(node: ast.AST, source: Source, runs: ast.AST | None = None) -> bool:
    """Return whether code computes with a tensor directly: not `x.to(d)`, `x.shape` or an index.

    Code of a lambda counts only if that `runs`.
    """
    inner = node
    for outer in list(source.ancestors(node))[1:]:
        if isinstance(outer, ast.stmt) or outer is runs:
            return True
        match outer:
            case ast.Call(func=function) if leaves_device(name := called_name(outer)):
                computes = name == "backward" or (name in TAKES_VALUES and isinstance(function, ast.Attribute))
                if not computes:  # `sum(x)`, but not `x.sum()`
                    return False
            case ast.Attribute(attr=fact) if fact in FACTS:
                return False
            case ast.Subscript(slice=index) if index is inner:
                return False
            case ast.Lambda() | ast.comprehension():
                return False
        inner = outer
    return True
