"""The op that failed, by the innermost expression over tensors of several devices."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from dataclasses import dataclass
from typing import Final

import torch

from devtrace.explaining.reading.attributes import attribute_of
from devtrace.explaining.reading.expressions import op_name
from devtrace.explaining.reading.reader import Reader
from devtrace.explaining.reading.values import Activation, TensorValue
from devtrace.explaining.stack import CALLS_OF_MODULES
from devtrace.recording.columns.operator_info import COMPUTE
from devtrace.source.matching import is_given, match_code, operands
from devtrace.source.parsing import NO_CODE

UNKNOWN: Final = ""
_UNREAD: Final = (ast.Call, ast.Attribute, ast.Subscript, ast.BinOp, ast.Name)


@dataclass(frozen=True, slots=True)
class FailedOp:
    """An op's name, its inputs, and the level of the stack whose line has it."""

    name: str
    inputs: list[TensorValue]
    depth: int

    @property
    def is_mixed(self) -> bool:
        return len({tensor.device for tensor in self.inputs}) > 1


def failed_op(reader: Reader) -> FailedOp | None:
    """Return the op that raised: the innermost with tensors of several devices, else the innermost with any tensor."""
    failed: FailedOp | None = None
    for depth in reversed(range(len(reader.stack.levels))):
        outer = _op_at(reader, depth)
        if outer is not None and outer.is_mixed:
            failed = outer
            break
        unread = _unread_inputs(reader, outer, failed) if outer is not None and failed is not None else None
        for value, dtype in unread or ():
            _settle(reader, value, dtype)
        failed = outer if failed is None or unread is not None else failed
        if reader.stack.levels[depth].is_readable:  # frames further out only lead here
            break
    if failed is None:
        return None
    failed = _op_of_user_line(reader, failed) or failed
    if len(failed.inputs) == len(reader.dtypes) == 1 and failed.inputs[0].dtype is None:  # torch named its dtype
        _settle(reader, failed.inputs[0], reader.dtypes[0])
    return failed


def _op_of_user_line(reader: Reader, failed: FailedOp) -> FailedOp | None:
    """Return the op as the user's line has it, if torch's frame knows less of its inputs.

    `torch.einsum(..., q, self.queue.clone())`: torch's frame cannot tell where the copy is from.
    """
    levels = reader.stack.levels
    if levels[failed.depth].is_readable:
        return None
    depth = next((depth for depth in reversed(range(failed.depth)) if levels[depth].is_readable), None)
    outer = _op_at(reader, depth) if depth is not None else None
    if outer is None or [tensor.device for tensor in outer.inputs] != [tensor.device for tensor in failed.inputs]:
        return None
    pairs = zip(outer.inputs, failed.inputs, strict=True)
    is_clearer = any(theirs.op is not None and reader.pasts.by_row.get(inner.row) is None for theirs, inner in pairs)
    return outer if is_clearer else None


def _unread_inputs(
    reader: Reader, failed: FailedOp, inner: FailedOp
) -> list[tuple[TensorValue, torch.dtype | None]] | None:
    """Return the input of a call whose dtype is unknown, with the dtype that remains for it; empty if all are known.

    None unless the call mixes the same dtypes as the op inside it: `torch.einsum(..., q, table)`.
    """
    dtypes_inside, counts = {tensor.dtype for tensor in inner.inputs}, Counter(tensor.dtype for tensor in inner.inputs)
    counts.subtract(tensor.dtype for tensor in failed.inputs if tensor.dtype is not None)
    unread, remaining = [tensor for tensor in failed.inputs if tensor.dtype is None], list(counts.elements())
    if None in dtypes_inside or len(dtypes_inside) < 2 or min(counts.values()) < 0 or len(remaining) != len(unread):
        return None
    return list(zip(unread, remaining, strict=True)) if not unread or (len(unread) == 1 and reader.of_dtypes) else None


def _settle(reader: Reader, value: TensorValue, dtype: torch.dtype | None) -> None:
    """Give a tensor of unknown dtype, and its sources, a dtype."""
    if value.op is not None and dtype is not None:
        value.op.layout, value.dtype = reader.layout(value.device, value.dims, dtype), dtype
        reader.pasts.settle(value.op, dtype, reader.dtypes)


def _op_at(reader: Reader, depth: int) -> FailedOp | None:
    """Return the op that a level's code asks for, with its tensors; None for code without tensors."""
    activation, node = reader.activation(depth), reader.node(depth)
    if activation is None or node is NO_CODE or reader.stack.levels[depth].frame.f_code in CALLS_OF_MODULES:
        return None
    statement = activation.source.statement(node)
    if is_given(node) and not (match_code("$owner[$index]", node) and isinstance(statement, ast.AugAssign)):
        node = statement  # the op is the whole store; but `x[i] += 1` fails at reading its item
    while isinstance(node, ast.Return | ast.Expr | ast.Await) and node.value is not None:
        node = node.value
    parts = operands(node)
    if isinstance(node, ast.Call) and type(reader.known(node.func, activation)) is functools.partial:
        parts += [attribute_of(node.func, name) for name in ("args", "keywords")]  # which it passes too
    values = [(part, reader.see(part, activation)) for part in parts]
    inputs = [tensor for part, value in values for tensor in reader.members(value, part, activation)]
    unread: list[ast.expr] = [part for part, value in values if value is None and isinstance(part, _UNREAD)]
    inputs = _by_elimination(reader, inputs, unread, activation)
    return FailedOp(op_name(node) or UNKNOWN, inputs, depth) if inputs else None


def _by_elimination(
    reader: Reader, inputs: list[TensorValue], unread: list[ast.expr], activation: Activation
) -> list[TensorValue]:
    """Add the only unread operand: on the device, or of the dtype, that torch names and no other operand has."""
    dtypes = [dtype for dtype in reader.dtypes if dtype not in [tensor.dtype for tensor in inputs]]
    if len(unread) == len(inputs) == len(dtypes) == 1 and len(reader.dtypes) == 2:
        return [*inputs, reader.emit(UNKNOWN, COMPUTE, unread[0], activation, [], inputs[0].device, dtype=dtypes[0])]
    devices = {tensor.device for tensor in inputs if tensor.dims > 0}
    others = [device for device in reader.devices if device not in devices]
    if len(devices) != 1 or len(others) != 1:
        return inputs
    if len(unread) == 1:
        return [*inputs, reader.emit(UNKNOWN, COMPUTE, unread[0], activation, [], others[0])]
    read = [tensor for tensor in inputs if tensor.op is not None and tensor.dims > 0]
    if len(read) == 1 and not unread and len(inputs) > 1 and (op := read[0].op) is not None:
        op.layout, read[0].device = reader.layout(others[0], read[0].dims), others[0]  # only the source placed it
    return inputs
