"""host-conversion: numpy was asked for a tensor that is on a device."""

from __future__ import annotations

import ast
import re
from typing import Final

from devtrace.diagnosis.evidence import origins
from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.trace_queries import HOST, TraceQueries
from devtrace.diagnosis.findings import Culprit, Finding
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.source.matching import called_name
from devtrace.source.object_walk import is_tensor
from devtrace.source.safe_values import values
from devtrace.words.text_format import one_line

_SAYS_NUMPY: Final = re.compile(r"convert (\S+) device type tensor to numpy")


def host_conversion(queries: TraceQueries, snapshot: FailureSnapshot, op: int, text: str) -> Finding | None:
    said = _SAYS_NUMPY.search(text)
    if said is None:
        return None
    stand = FailingFrame.of(snapshot, 0, HOST)
    row = _tensor(queries, snapshot, op, stand)
    site = queries.trace.ops.number("site", op)
    device = queries.device(row) if row >= 0 else said[1]
    culprit = _culprit(queries, snapshot, row, stand) if row >= 0 else None
    mend = _fix(row, stand)
    name = culprit.name if culprit else "the tensor"
    return Finding(
        rule="host-conversion",
        severity="error",
        cause="host-boundary",
        devices=(device, HOST),
        site=queries.site(site),
        op=op,
        culprit=culprit,
        bytes=queries.trace.tensors.number("bytes", row) if row >= 0 else 0,
        message=f"{name} is on {device}; numpy reads the memory of the host only.",
        help=mend.help,
        edits=mend.edits,
        ops=(op,),
    )


def _tensor(queries: TraceQueries, snapshot: FailureSnapshot, op: int, stand: FailingFrame | None) -> int:
    """The row of the tensor to be converted: what the line has just computed, the op's own, what the line speaks of."""
    if stand is not None and isinstance(operand(stand), ast.Call | ast.BinOp) and op > 0:
        fresh = [row for row in queries.outputs(op - 1) if queries.device(row) != HOST]
        if fresh:
            return fresh[0]
    for row in queries.inputs(op):
        if queries.device(row) != HOST:
            return row
    found = values(stand.source_node.node, stand.source_node.source, stand.scope()) if stand is not None else []
    rows = (snapshot.row(value.value) for value in found if is_tensor(value.value))
    return next((row for row in rows if row is not None and queries.device(row) != HOST), -1)


def _culprit(queries: TraceQueries, snapshot: FailureSnapshot, row: int, stand: FailingFrame | None) -> Culprit:
    base = queries.base(row)
    node = (operand(stand) or stand.node_of(row)) if stand is not None else None
    producer = queries.producer(row)
    place = queries.source_node(queries.trace.ops.number("site", producer)) if producer >= 0 else None
    said = [name.text for name in snapshot.names(row)]
    said += [stand.code.text(node)] if stand is not None and node is not None else []
    said += origins.targets(place) if place is not None else []
    said += [str(queries.trace.tensors.raw("name", row))]
    spoken = tuple(dict.fromkeys(name for name in said if name)) or ("the tensor",)
    tensor = queries.trace.tensors[row]
    born = origins.shown(queries, queries.born(base))
    return Culprit(
        name=spoken[0],
        names=spoken,
        device=queries.device(row),
        shape=tuple(tensor.shape),
        dtype=tensor.dtype,
        born=born,
        chain=(born,) if born is not None else (),
    )


def _fix(row: int, stand: FailingFrame | None) -> Fix:
    """`x.numpy()` becomes `x.cpu().numpy()`, `np.asarray(x)` becomes `np.asarray(x.cpu())`."""
    words = Fix("bring it to the host first: x.cpu().numpy()")
    if stand is None:
        return words
    node = operand(stand) or stand.node_of(row)
    if node is None:
        return words
    new = f"{stand.code.moved_to(node, 'cpu').removesuffix('.to(cpu)')}.cpu()"
    edit = stand.code.replaced(node, new)
    return Fix(f"bring it to the host first: {one_line(new)}", (edit,)) if edit is not None else words


def operand(stand: FailingFrame) -> ast.expr | None:
    """What is converted: `x` of `x.numpy()`, of `np.asarray(x)`."""
    call = _conversion(stand.source_node.node)
    if call is not None and isinstance(call.func, ast.Attribute):
        return call.func.value
    at = stand.source_node.node
    if isinstance(at, ast.Call) and called_name(at) in ("array", "asarray", "ascontiguousarray") and at.args:
        return None if isinstance(at.args[0], ast.List | ast.Tuple | ast.ListComp) else at.args[0]
    return None


def _conversion(node: ast.AST) -> ast.Call | None:
    """The call of `.numpy()` at or in a failing line."""
    calls = (inner for inner in ast.walk(node) if isinstance(inner, ast.Call))
    return next((c for c in calls if isinstance(c.func, ast.Attribute) and c.func.attr == "numpy" and not c.args), None)
