"""The op that failed: its name and inputs, by the innermost expression over tensors of several devices."""

import ast
from dataclasses import dataclass
from typing import Final

from devtrace.explaining.reading.activation import Activation
from devtrace.explaining.reading.expressions import asked
from devtrace.explaining.reading.reader import Reader
from devtrace.explaining.reading.values import TensorValue
from devtrace.explaining.stack import CALLS_OF_MODULES
from devtrace.recording.columns.operator_info import COMPUTE
from devtrace.source.flow import operands

UNKNOWN: Final = "unknown"
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
    """Return the op that raised; where no expression has tensors of several devices the innermost with any."""
    first = None
    for depth in reversed(range(len(reader.stack.levels))):
        found = _at(reader, depth)
        if found is not None and found.is_mixed:
            return found
        first = first or found
        if reader.stack.levels[depth].is_readable:
            return first
    return first


def _at(reader: Reader, depth: int) -> FailedOp | None:
    activation, node = reader.activation(depth), reader.node(depth)
    if activation is None or node is None or _is_of_no_interest(reader, depth):
        return None
    if isinstance(getattr(node, "ctx", None), ast.Store):
        node = activation.source.statement(node) or node
    while isinstance(node, ast.Return | ast.Expr | ast.Await) and node.value is not None:
        node = node.value
    values = [(part, reader.see(part, activation)) for part in operands(node)]
    inputs = [each for part, value in values for each in reader.members(value, part, activation)]
    unread: list[ast.expr] = [part for part, value in values if value is None and isinstance(part, _UNREAD)]
    inputs = _by_elimination(reader, inputs, unread, activation)
    return FailedOp(asked(node) or UNKNOWN, inputs, depth) if inputs else None


def _is_of_no_interest(reader: Reader, depth: int) -> bool:
    """Return whether a frame of torch's only hands a module's call on: its arguments are of no op."""
    return reader.stack.levels[depth].frame.f_code in CALLS_OF_MODULES


def _by_elimination(
    reader: Reader, inputs: list[TensorValue], unread: list[ast.expr], activation: Activation
) -> list[TensorValue]:
    """Give one operand that nothing is known of the one device that torch named and no other operand is on."""
    devices = {each.device for each in inputs if each.dims > 0}
    left = [device for device in reader.devices if device not in devices]
    if len(devices) != 1 or len(left) != 1:
        return inputs
    if len(unread) == 1:
        return [*inputs, reader.emit(UNKNOWN, COMPUTE, unread[0], activation, [], left[0])]
    read = [each for each in inputs if each.op is not None and each.dims > 0]
    if len(read) == 1 and not unread and len(inputs) > 1:
        _turn(reader, read[0], left[0])
    return inputs


def _turn(reader: Reader, value: TensorValue, device: str) -> None:
    """Let a tensor that was only read be on the device that torch says one is on."""
    assert value.op is not None
    value.op.layout, value.device = reader.layout(device, value.dims), device
