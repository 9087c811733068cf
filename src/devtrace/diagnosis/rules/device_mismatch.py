"""device-mismatch: an op got tensors of several devices and raised.

model.to(device)
model.head = nn.Linear(8, 2)                # bad: attached after the move
model.head = nn.Linear(8, 2).to(device)     # good
"""

import ast
from collections.abc import Iterator
from dataclasses import replace

from devtrace.diagnosis.evidence.failing_moment import FailingMoment
from devtrace.diagnosis.evidence.frame_code import FailingFrame
from devtrace.diagnosis.evidence.intent import intended
from devtrace.diagnosis.evidence.mismatch import Mismatch, find_mismatch
from devtrace.diagnosis.evidence.mismatch_case import MismatchCase
from devtrace.diagnosis.evidence.origins import factory_call
from devtrace.diagnosis.evidence.source_text import assigned_names
from devtrace.diagnosis.evidence.torchs_sentences import NO_DATA, refused_gradient
from devtrace.diagnosis.evidence.trace_queries import HOST, META, TraceQueries
from devtrace.diagnosis.findings import Finding
from devtrace.diagnosis.rules.explained_mismatch import explained
from devtrace.source.kinds import device_named_by
from devtrace.source.matching import called_name, calls_in, given_trait, listed, nodes_of, variable
from devtrace.source.object_walk import is_tensor
from devtrace.source.safe_values import values, worth
from devtrace.source.vocabulary import in_full
from devtrace.trace.ids import OpId, TensorId


def device_mismatch(queries: TraceQueries, moment: FailingMoment, op: OpId, text: str) -> Finding | None:
    mismatch = _refused_gradient(queries, op, text) or _refused_copy(queries, moment, op, text)
    if mismatch is None and (of_inputs := find_mismatch(queries, op)) is not None:
        mismatch = _blame_the_input(queries, moment, intended(queries, moment, of_inputs))
    return explained(MismatchCase.of(queries, moment, mismatch), "device-mismatch") if mismatch is not None else None


def _blame_the_input(queries: TraceQueries, moment: FailingMoment, mismatch: Mismatch) -> Mismatch:
    """Blame a layer's input, not the tensor that the layer made on the input's device (LSTMCell makes its state)."""
    producer, ops = queries.producer(mismatch.odd_tensor), queries.trace.ops
    was_made_in_a_call = producer >= 0 and queries.kind(producer) == "create" and ops.number("call", producer) >= 0
    places = [(ops.number("site", op), ops.number("call", op)) for op in (producer, mismatch.op) if op >= 0]
    if not was_made_in_a_call or places[0] != places[-1]:  # not by the layer that failed
        return mismatch
    frame = FailingFrame.reading(moment, 0, mismatch.expected_trait)
    failing = queries.op_node(mismatch.op)
    if not isinstance(failing.node, ast.Call) or factory_call(failing) is not None:
        return mismatch
    rows = [moment.row(value.value) for value in values(failing.node, failing.source, frame.scope())]
    of_odd_trait = [row for row in rows if row is not None and queries.device(row) == mismatch.odd_trait]
    tensor = next((row for row in of_odd_trait if queries.dims[row] > 0), mismatch.odd_tensor)
    return replace(mismatch, odd_tensor=tensor)


# Gradients that torch refused, by an error's text, if the trace has the tensor.


def _refused_gradient(queries: TraceQueries, op: OpId, text: str) -> Mismatch | None:
    refused = refused_gradient(text)
    if refused is None:
        return None
    step = _last_step_of_backward(queries, op)
    used = {row for step_op in step for row in queries.inputs(step_op)}
    results = [row for step_op in step for row in queries.outputs(step_op) if row not in used]
    gradients = [row for row in results if queries.device(row) == refused.got]
    if len(gradients) > 1:
        gradients = [row for row in gradients if _is_returned_at(queries, row, refused.at)]
    return Mismatch(op, gradients[0], refused.got, refused.expected, of="gradient") if len(gradients) == 1 else None


def _last_step_of_backward(queries: TraceQueries, op: OpId) -> list[OpId]:
    """Return the last ops of a backward pass that one function ran."""
    sites, step = queries.trace.sites, list[OpId]()
    for earlier_op in map(OpId, range(op - 1, -1, -1)):
        site = queries.op_site(earlier_op)
        if queries.trace.ops.raw("phase", earlier_op) != "backward" or site < 0:
            break
        if step and sites.raw("function", site) != sites.raw("function", queries.op_site(step[0])):
            break
        step.append(earlier_op)
    return step[::-1]


def _is_returned_at(queries: TraceQueries, row: TensorId, index: int) -> bool:
    """Return whether a function returns a tensor at a position: `return gradient, scale`."""
    maker = queries.op_node(queries.producer(row))
    returns = nodes_of(ast.Return, maker.function) if maker.function is not None else ()
    returned = (listed(statement.value) for statement in returns if statement.value is not None)
    at_index = [value for items in returned for value in items[index : index + 1]]
    return any(variable(value) in assigned_names(maker) or maker.node in ast.walk(value) for value in at_index)


# Copies of tensors without data.


def _refused_copy(queries: TraceQueries, moment: FailingMoment, op: OpId, text: str) -> Mismatch | None:
    rows = [row for row in queries.inputs(op) if queries.device(row) == META]
    if not rows or NO_DATA not in text:
        return None
    frames = FailingFrame.all_of(moment, "", to_read=True)
    calls = ((call, frame) for frame in frames for call in calls_in(frame.source_node.node))
    devices = (device for call, frame in calls for device in _device_named_by(call, frame) if device)
    return Mismatch(op, rows[0], META, next(devices, ""), tuple(rows[1:]), of="copy")


def _device_named_by(call: ast.Call, frame: FailingFrame) -> Iterator[str]:
    """Yield the device that a call names: `"cuda:0"` of `x.to("cuda:0")`, `cpu` of `x.cpu()`."""
    method, argument = called_name(call), given_trait(call)
    if argument is not None:
        value = worth(argument, frame.scope())
        yield frame.moment.trait_of(value) if is_tensor(value) else in_full(device_named_by(value))
    elif method in (HOST, "numpy"):
        yield HOST
    elif method in frame.moment.queries.move_methods and not call.args:
        yield f"{method}:0"
