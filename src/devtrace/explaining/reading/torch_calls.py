"""Calls of torch's functions and of tensors' methods: what they make, and on which device."""

import ast
from typing import NamedTuple

from devtrace.explaining.reading.activation import Activation
from devtrace.explaining.reading.reader import ITSELF, Reader
from devtrace.explaining.reading.values import TensorValue, Value
from devtrace.recording.columns.operator_info import COMPUTE, COPY, CREATE, VIEW
from devtrace.source.matching import called_name, match_code
from devtrace.source.vocabulary import (
    COPIES,
    DESCRIBES,
    MAKES,
    MAKES_ON_HOST,
    OF_DATA,
    READS,
    VIEWS,
    changes_itself,
    in_full,
    is_move,
    kinds,
)


class Written(NamedTuple):
    """A call in the source, its keyword arguments, and the run of the function that it is in."""

    node: ast.Call
    words: dict[str, ast.expr]
    activation: Activation

    def given_device(self, reader: Reader) -> str | None:
        """Return the `device=` of the call, empty if it cannot be read; None where it has none."""
        given = self.words.get("device")
        return (
            None
            if given is None or match_code("None", given) is not None
            else reader.named_device(reader.see(given, self.activation))
        )

    def tensors(self, reader: Reader) -> list[TensorValue]:
        return reader.tensors((*self.node.args, *self.words.values()), self.activation)


def call_torch(reader: Reader, name: str, call: Written) -> Value | None:
    """Return what a function of torch's makes; None for one that makes no tensor of its inputs."""
    if name in MAKES or name in MAKES_ON_HOST:
        return _make(reader, name, call)
    inputs = call.tensors(reader)
    if not inputs:
        return None
    if name.endswith("_like"):
        return _make_like(reader, f"aten.{name}", call, inputs)
    return reader.derived(f"aten.{name}", _kind(name), call.node, call.activation, inputs)


def _make(reader: Reader, name: str, call: Written) -> Value | None:
    """Return what a factory makes: on the device that it is given, else on the default device."""
    node, _, activation = call
    device = call.given_device(reader)
    if device is None and name in OF_DATA and node.args:
        given = reader.see(node.args[0], activation)
        if isinstance(given, TensorValue):
            return given
    if device is None:
        device = "cpu" if name in MAKES_ON_HOST else _default_device(reader, node, activation)
    elif not device:
        return None
    return reader.emit(f"aten.{name}", CREATE, node, activation, [], device)


def _default_device(reader: Reader, node: ast.AST, activation: Activation) -> str:
    """Return the device of a `with torch.device(...)` around an expression, else the default device."""
    for outer in activation.source.ancestors(node):
        for item in outer.items if isinstance(outer, ast.With) else ():
            if isinstance(item.context_expr, ast.Call) and called_name(item.context_expr) != "device":
                continue
            device = reader.named_device(reader.see(item.context_expr, activation))
            if device:
                return device
    return reader.default_device


def _make_like(reader: Reader, name: str, call: Written, inputs: list[TensorValue]) -> Value | None:
    """Return what a factory makes that takes its device from its input where it is given none."""
    device = call.given_device(reader)
    if device is None:
        device = inputs[0].device
    return reader.emit(name, CREATE, call.node, call.activation, inputs[:1], device) if device else None


def call_method(reader: Reader, owner: TensorValue, name: str, call: Written) -> Value | None:
    """Return what a method of a tensor makes."""
    if name in READS or name in DESCRIBES:
        return None
    if is_move(name):
        return _move(reader, owner, name, call)
    if name.startswith("new_"):
        return _make_like(reader, f"aten.{name}", call, [owner])
    made = reader.derived(f"aten.{name}", _kind(name), call.node, call.activation, [owner, *call.tensors(reader)])
    return owner if changes_itself(name) else made


def _kind(name: str) -> int:
    return COPY if name in COPIES else VIEW if name in VIEWS else COMPUTE


def _move(reader: Reader, owner: TensorValue, name: str, call: Written) -> Value | None:
    node, words, activation = call
    asked = [*node.args[:1], *(words[word] for word in ("device", "other") if word in words)]
    values = [reader.see(each, activation) for each in asked]
    device = "cpu" if name == "cpu" else next(filter(None, map(reader.named_device, values)), "")
    if name in kinds() and not device:
        device = in_full(name)
    if not device:  # `.to(torch.float16)`, or something that cannot be read
        return None if any(value is None for value in values) else owner
    if owner.row == ITSELF:
        owner = reader.former_of_itself(device) or owner
    if device == owner.device:
        return owner
    return reader.emit("aten._to_copy", COPY, node, activation, [owner], device, owner.dims)
