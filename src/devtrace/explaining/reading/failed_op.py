"""The op that failed, by the innermost expression over tensors of several devices."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from dataclasses import dataclass
from typing import Final

import torch

from devtrace.explaining.reading.attributes import attribute_of
from devtrace.explaining.reading.expressions import asked
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
        return len({each.device for each in self.inputs}) > 1


def failed_op(reader: Reader) -> FailedOp | None:
    """Return the op that raised; where no expression has tensors of several devices the innermost with any.

    Its only tensor of unknown dtype gets the one dtype that torch names.
    """
    found: FailedOp | None = None
    for depth in reversed(range(len(reader.stack.levels))):
        here = _at(reader, depth)
        if here is not None and here.is_mixed:
            found = here
            break
        unread = _unread_of(reader, here, found) if here is not None and found is not None else None
        for each, dtype in unread or ():
            _settle(reader, each, dtype)
        found = here if found is None or unread is not None else found
        if reader.stack.levels[depth].is_readable:
            break
    if found is None:
        return None
    found = _as_handed_over(reader, found) or found
    if len(found.inputs) == len(reader.dtypes) == 1 and found.inputs[0].dtype is None:
        _settle(reader, found.inputs[0], reader.dtypes[0])
    return found


def _as_handed_over(reader: Reader, failed: FailedOp) -> FailedOp | None:
    """Return the op as the user's line has it, if torch's frame knows less of its inputs.

    `torch.einsum(..., q, self.queue.clone())`: torch's frame cannot tell where the copy is from.
    """
    levels = reader.stack.levels
    if levels[failed.depth].is_readable:
        return None
    depth = next((at for at in reversed(range(failed.depth)) if levels[at].is_readable), None)
    outer = _at(reader, depth) if depth is not None else None
    if outer is None or [each.device for each in outer.inputs] != [each.device for each in failed.inputs]:
        return None
    pairs = zip(outer.inputs, failed.inputs, strict=True)
    is_clearer = any(own.op is not None and reader.pasts.by_row.get(each.row) is None for own, each in pairs)
    return outer if is_clearer else None


def _unread_of(
    reader: Reader, failed: FailedOp, inner: FailedOp
) -> list[tuple[TensorValue, torch.dtype | None]] | None:
    """Return the unknown input of a call with the dtype that remains for it; empty if all are known.

    None unless the call mixes the same dtypes as the op inside it: `torch.einsum(..., q, table)`.
    """
    theirs, left = {each.dtype for each in inner.inputs}, Counter(each.dtype for each in inner.inputs)
    left.subtract(each.dtype for each in failed.inputs if each.dtype is not None)
    unread, rest = [each for each in failed.inputs if each.dtype is None], list(left.elements())
    if None in theirs or len(theirs) < 2 or min(left.values()) < 0 or len(rest) != len(unread):
        return None
    return list(zip(unread, rest, strict=True)) if not unread or (len(unread) == 1 and reader.of_dtypes) else None


def _settle(reader: Reader, value: TensorValue, dtype: torch.dtype | None) -> None:
    """Give a tensor of unknown dtype, and its sources, a dtype."""
    if value.op is not None and dtype is not None:
        value.op.layout, value.dtype = reader.layout(value.device, value.dims, dtype), dtype
        reader.pasts.settle(value.op, dtype, reader.dtypes)


def _at(reader: Reader, depth: int) -> FailedOp | None:
    activation, node = reader.activation(depth), reader.node(depth)
    if activation is None or node is NO_CODE or reader.stack.levels[depth].frame.f_code in CALLS_OF_MODULES:
        return None
    statement = activation.source.statement(node)
    if is_given(node) and not (match_code("$owner[$index]", node) and hasattr(statement, "op")):
        node = statement  # `counts[labels] += 1` reads the item first
    while isinstance(node, ast.Return | ast.Expr | ast.Await) and node.value is not None:
        node = node.value
    parts = operands(node)
    if isinstance(node, ast.Call) and type(reader.known(node.func, activation)) is functools.partial:
        parts += [attribute_of(node.func, name) for name in ("args", "keywords")]
    values = [(part, reader.see(part, activation)) for part in parts]
    inputs = [each for part, value in values for each in reader.members(value, part, activation)]
    unread: list[ast.expr] = [part for part, value in values if value is None and isinstance(part, _UNREAD)]
    inputs = _by_elimination(reader, inputs, unread, activation)
    return FailedOp(asked(node) or UNKNOWN, inputs, depth) if inputs else None


def _by_elimination(
    reader: Reader, inputs: list[TensorValue], unread: list[ast.expr], activation: Activation
) -> list[TensorValue]:
    """Give the only unknown operand the device, or dtype, that torch names and no other operand has."""
    dtypes = [dtype for dtype in reader.dtypes if dtype not in [each.dtype for each in inputs]]
    if len(unread) == len(inputs) == len(dtypes) == 1 and len(reader.dtypes) == 2:
        return [*inputs, reader.emit(UNKNOWN, COMPUTE, unread[0], activation, [], inputs[0].device, dtype=dtypes[0])]
    devices = {each.device for each in inputs if each.dims > 0}
    left = [device for device in reader.devices if device not in devices]
    if len(devices) != 1 or len(left) != 1:
        return inputs
    if len(unread) == 1:
        return [*inputs, reader.emit(UNKNOWN, COMPUTE, unread[0], activation, [], left[0])]
    read = [each for each in inputs if each.op is not None and each.dims > 0]
    if len(read) == 1 and not unread and len(inputs) > 1 and (op := read[0].op) is not None:
        op.layout, read[0].device = reader.layout(left[0], read[0].dims), left[0]  # it was only read
    return inputs
