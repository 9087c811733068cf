"""device-mismatch: an op got tensors of several devices and raised.

model.to(device)
model.head = nn.Linear(8, 2)                # bad: attached after the move
model.head = nn.Linear(8, 2).to(device)     # good
"""

import ast
from dataclasses import replace

from devtrace.diagnosis.evidence.case import Case
from devtrace.diagnosis.evidence.failure_snapshot import FailureSnapshot
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.intent import intended
from devtrace.diagnosis.evidence.mismatch import Mismatch, find_mismatch
from devtrace.diagnosis.evidence.origins import factory_call
from devtrace.diagnosis.evidence.refusals import find_refusal
from devtrace.diagnosis.evidence.trace_queries import TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.rules.explained_mismatch import explained
from devtrace.source.safe_values import values
from devtrace.trace.ids import OpId


def device_mismatch(queries: TraceQueries, snapshot: FailureSnapshot, op: OpId, text: str) -> Finding | None:
    refused = find_refusal(queries, snapshot, op, text)
    found = find_mismatch(queries, op) if refused is None else None
    if found is not None:
        found = _blame_the_input(queries, snapshot, intended(queries, snapshot, found))
    mismatch = refused or found
    return explained(Case.of(queries, snapshot, mismatch), "device-mismatch") if mismatch is not None else None


def _blame_the_input(queries: TraceQueries, snapshot: FailureSnapshot, mismatch: Mismatch) -> Mismatch:
    """Blame a layer's input, not the tensor that the layer made on the input's device (LSTMCell makes its state)."""
    made = queries.producer(mismatch.odd_tensor)
    if made < 0 or not _was_made_by_the_failing_layer(queries, made, mismatch.op):
        return mismatch
    frame = FailingFrame.reading(snapshot, 0, mismatch.expected_device)
    found = queries.op_node(mismatch.op)
    if frame is None or found is None or not isinstance(found.node, ast.Call) or factory_call(found) is not None:
        return mismatch
    rows = [snapshot.row(value.value) for value in values(found.node, found.source, frame.scope())]
    on_odd_device = [row for row in rows if row is not None and queries.device(row) == mismatch.odd_device]
    tensor = next((row for row in on_odd_device if queries.dims[row] > 0), mismatch.odd_tensor)
    return replace(mismatch, odd_tensor=tensor)


def _was_made_by_the_failing_layer(queries: TraceQueries, made: OpId, failed: OpId) -> bool:
    ops = queries.trace.ops
    in_a_call = ops.number("call", made) >= 0
    alike = all(ops.number(column, made) == ops.number(column, failed) for column in ("site", "call"))
    return in_a_call and alike and queries.kind(made) == "create"
