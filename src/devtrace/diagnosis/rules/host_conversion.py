"""host-conversion: numpy was asked for a tensor that is on a device."""

from __future__ import annotations

import ast
import re
from typing import Final

from devtrace.diagnosis.causes import host_boundary
from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.source_text import assigned_names, statement_site
from devtrace.diagnosis.evidence.trace_queries import HOST, TraceQueries
from devtrace.diagnosis.findings import Culprit, Finding
from devtrace.diagnosis.fixes.fix import Fix
from devtrace.diagnosis.rules.rule import ErrorRule
from devtrace.source.matching import called_name, calls_in, match_code
from devtrace.source.object_walk import is_tensor
from devtrace.source.safe_values import values
from devtrace.words.catalogue import sentence, unnamed
from devtrace.words.text_format import one_line

_IS_NUMPY: Final = re.compile(r"convert (\S+) device type tensor to numpy")


def host_conversion(queries: TraceQueries, snapshot: FailureSnapshot, op: int, text: str) -> Finding | None:
    error = _IS_NUMPY.search(text)
    if error is None:
        return None
    frame = FailingFrame.of(snapshot, 0, HOST)
    row = _tensor(queries, snapshot, op, frame)
    device = queries.device(row) if row >= 0 else error[1]
    culprit = _culprit(queries, snapshot, row, frame) if row >= 0 else None
    fix = _fix(row, frame)
    return Finding(
        rule="host-conversion",
        severity="error",
        cause="host-boundary",
        devices=(device, HOST),
        site=queries.site(queries.trace.ops.number("site", op)),
        op=op,
        culprit=culprit,
        bytes=queries.trace.tensors.number("bytes", row) if row >= 0 else 0,
        message=sentence("host-conversion.message", name=_shown_name(culprit), device=device),
        help=fix.help,
        edits=fix.edits,
        ops=(op,),
    )


RULE: Final = ErrorRule(
    slug="host-conversion",
    explain=host_conversion,
)


def _shown_name(culprit: Culprit | None) -> str:
    return culprit.name if culprit is not None and culprit.name != unnamed() else ""


def _tensor(queries: TraceQueries, snapshot: FailureSnapshot, op: int, frame: FailingFrame | None) -> int:
    """Return the converted tensor: the line's own result, else the op's input, else a value of the line; or -1."""
    rows: list[int | None] = []
    if frame is not None and isinstance(_operand(frame), ast.Call | ast.BinOp) and op > 0:
        rows += queries.outputs(op - 1)
    rows += queries.inputs(op)
    if frame is not None:
        found = values(frame.source_node.node, frame.source_node.source, frame.scope())
        rows += [snapshot.row(value.value) for value in found if is_tensor(value.value)]
    return next((row for row in rows if row is not None and queries.device(row) != HOST), -1)


def _culprit(queries: TraceQueries, snapshot: FailureSnapshot, row: int, frame: FailingFrame | None) -> Culprit:
    node = (_operand(frame) or frame.node_of(row)) if frame is not None else None
    producer = queries.producer(row)
    made = queries.source_node(queries.trace.ops.number("site", producer)) if producer >= 0 else None
    texts = [name.text for name in snapshot.names(row)]
    texts += [frame.code.text(node)] if frame is not None and node is not None else []
    texts += assigned_names(made) if made is not None else []
    texts += [str(queries.trace.tensors.raw("name", row))]
    names = tuple(dict.fromkeys(text for text in texts if text)) or (unnamed(),)
    tensor = queries.trace.tensors[row]
    born = statement_site(queries, queries.born(queries.base(row)))
    return Culprit(
        name=names[0],
        names=names,
        device=queries.device(row),
        shape=tuple(tensor.shape),
        dtype=tensor.dtype,
        born=born,
        chain=(born,) if born is not None else (),
        certainty="inferred" if born is not None and queries.birth_was_read(row) else "seen",
    )


def _fix(row: int, frame: FailingFrame | None) -> Fix:
    """`x.numpy()` becomes `x.cpu().numpy()`, `np.asarray(x)` becomes `np.asarray(x.cpu())`."""
    node = (_operand(frame) or frame.node_of(row)) if frame is not None else None
    if frame is not None and node is not None:
        new = f"{frame.code.moved_to(node, 'cpu').removesuffix('.to(cpu)')}.cpu()"
        edit = frame.code.replaced(node, new)
        if edit is not None:
            return Fix(sentence("fixed.to-cpu", code=one_line(new)), (edit,))
    return Fix(host_boundary.CAUSE.advice())


def _operand(frame: FailingFrame) -> ast.expr | None:
    """Return what is converted: `x` of `x.numpy()` and of `np.asarray(x)`."""
    at = frame.source_node.node
    for call in calls_in(at):
        if match_code("$x.numpy()", call) and isinstance(call.func, ast.Attribute):
            return call.func.value
    if isinstance(at, ast.Call) and called_name(at) in ("array", "asarray", "ascontiguousarray") and at.args:
        return None if isinstance(at.args[0], ast.List | ast.Tuple | ast.ListComp) else at.args[0]
    return None
