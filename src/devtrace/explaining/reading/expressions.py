"""Expressions that are no look-up and no call: constants, operators, sequences, comprehensions."""

import ast
from typing import Any

from devtrace.explaining.reading.activation import Activation
from devtrace.explaining.reading.reader import Reader
from devtrace.explaining.reading.values import Known, Several, Value
from devtrace.recording.columns.operator_info import COMPUTE
from devtrace.source.flow import operands
from devtrace.source.matching import called_name


def read_constant(reader: Reader, node: ast.Constant, activation: Activation) -> Value | None:
    return Known(node.value)


def computed(
    reader: Reader, name: str, node: ast.AST, operands: list[ast.expr], activation: Activation
) -> Value | None:
    """Return what an operator makes of its operands; None where no tensor is among them."""
    inputs = reader.tensors(operands, activation)
    return reader.derived(name, COMPUTE, node, activation, inputs) if inputs else None


def read_operation(reader: Reader, node: ast.expr, activation: Activation) -> Value | None:
    return computed(reader, asked(node), node, operands(node), activation)


def read_binary(reader: Reader, node: ast.BinOp, activation: Activation) -> Value | None:
    """Return what an operator makes of tensors, else the text or the number that two known ones add up to."""
    made = read_operation(reader, node, activation)
    left, right = reader.see(node.left, activation), reader.see(node.right, activation)
    if made or not isinstance(node.op, ast.Add) or not isinstance(left, Known) or not isinstance(right, Known):
        return made
    is_plain = type(left.value) is type(right.value) and type(left.value) in (str, int)
    return Known(left.value + right.value) if is_plain else None


def asked(node: ast.AST) -> str:
    """Return the name of the op that code asks of torch."""
    match node:
        case ast.Call():
            return called_name(node)
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) | ast.UnaryOp(op=operator):
            return f"Tensor.{type(operator).__name__.lower()}"
        case ast.Compare():
            return "Tensor.compare"
        case ast.Subscript():
            return "aten.index.Tensor"
        case ast.Assign(targets=[ast.Subscript()]):
            return "aten.index_put_"
        case ast.Assign():
            return "Tensor.set"
    return node.attr if isinstance(node, ast.Attribute) else ""


def read_either(reader: Reader, node: ast.BoolOp | ast.IfExp, activation: Activation) -> Value | None:
    """Return the first of the branches that can be read: no test is run."""
    branches = node.values if isinstance(node, ast.BoolOp) else (node.body, node.orelse)
    return next((value for each in branches if (value := reader.see(each, activation)) is not None), None)


def read_inner(reader: Reader, node: Any, activation: Activation) -> Value | None:
    """Return the value of what `x := value`, `*value` and `await value` hold."""
    return reader.see(node.value, activation)


def read_sequence(reader: Reader, node: Any, activation: Activation) -> Value | None:
    found: list[Value | None] = []
    for each in node.elts:
        value = reader.see(each, activation)
        if not isinstance(each, ast.Starred):
            found.append(value)
        else:
            found += value.items if isinstance(value, Several) else reader.members(value, each.value, activation)
    return Several(tuple(found))


def read_dict(reader: Reader, node: ast.Dict, activation: Activation) -> Value | None:
    keys = tuple(each.value if isinstance(each, ast.Constant) else None for each in node.keys)
    return Several(tuple(reader.see(each, activation) for each in node.values), keys)


def read_comprehension(reader: Reader, node: Any, activation: Activation) -> Value | None:
    """Return a sequence of one item, which stands for all."""
    value = reader.see(node.elt, activation)
    return Several((value,)) if value is not None else None


def read_text(reader: Reader, node: ast.JoinedStr, activation: Activation) -> Value | None:
    parts = [
        reader.see(each.value if isinstance(each, ast.FormattedValue) else each, activation) for each in node.values
    ]
    texts = [str(each.value) for each in parts if isinstance(each, Known) and type(each.value) in (str, int)]
    return Known("".join(texts)) if len(texts) == len(parts) else None
