"""Gradients: those that a backward pass left on a device, and one that an autograd function of the user's returns."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from types import FunctionType
from typing import Any, Final

import torch

from devtrace.diagnosis.evidence.frame_code import STEP_OF_BACKWARD
from devtrace.explaining.reading.activation import Activation
from devtrace.explaining.reading.failed_op import UNKNOWN, FailedOp
from devtrace.explaining.reading.file_index import index_of
from devtrace.explaining.reading.reader import Reader
from devtrace.explaining.reading.runs import is_theirs, results, run_around, run_of
from devtrace.explaining.reading.statements import parameters, statements
from devtrace.explaining.reading.values import Several, TensorValue, Value
from devtrace.recording.columns.operator_info import COMPUTE
from devtrace.recording.context.module_tree import class_name
from devtrace.runtime.quiet import device_of, gradient_of, is_leaf
from devtrace.source.matching import called_name, calls_in
from devtrace.source.safe_values import class_dict

_REFUSED: Final = re.compile(
    r"Function (\w+)Backward returned an invalid gradient at index (\d+) - "
    r"expected device (?:type )?(\S+) but got (\S+)"
)
MOST_CLASSES: Final = 1_000


def refused_gradient(reader: Reader, text: str) -> FailedOp | None:
    """Return the step of a backward pass that got a gradient of the wrong device, by the function that returned it."""
    refused = _REFUSED.search(text)
    caller = next(reader.user_activations(), None)
    if refused is None or caller is None:
        return None
    functions = [kind for kind in _autograd_functions() if class_name(kind, "__name__") == refused[1]]
    if len(functions) != 1:
        return None
    found = _returned(reader, functions[0], int(refused[2]), refused[3], refused[4], caller)
    if found is None:
        return None
    expected = TensorValue(reader.rows.add(reader.layout(refused[3], 1), -1, -1, -1), refused[3])
    return FailedOp(STEP_OF_BACKWARD, [expected, found], caller.depth)


def _autograd_functions() -> Iterator[type]:
    """Yield the classes of autograd functions, without asking a metaclass."""
    waiting: list[type] = type.__subclasses__(torch.autograd.Function)
    for count, kind in enumerate(waiting):
        if count < MOST_CLASSES:
            yield kind
            waiting += type.__subclasses__(kind)


def _returned(
    reader: Reader, kind: type, index: int, expected: str, got: str, caller: Activation
) -> TensorValue | None:
    """Return what a class's `backward` gives for one of its inputs, if that can be on the device that torch got."""
    static = class_dict(kind).get("backward")
    function = static.__func__ if type(static) is staticmethod else None
    if type(function) is not FunctionType or not is_theirs(function.__code__):
        return None
    run = run_of(reader, function, {}, caller)
    if run is None:
        return None
    for name in parameters(run.body)[1:]:
        run.bound[name] = reader.emit(UNKNOWN, COMPUTE, run.body, run, [], expected)
    for node in results(run.body):
        value = _item(reader.see(node, run.at_node(node)), index)
        if isinstance(value, TensorValue) and value.device == got:
            return value
    return None


def _item(value: Value | None, index: int) -> Value | None:
    if isinstance(value, Several):
        return value.item(index)
    return value if index == 0 else None


def add_left_behind(reader: Reader, tensors: Iterable[Any]) -> None:
    """Note the one line that made gradients which are not where their tensors are: these were moved without them."""
    for tensor in tensors:
        gradient = gradient_of(tensor) if is_leaf(tensor) else None
        if gradient is None or device_of(gradient) == device_of(tensor):
            continue
        found = _backward_pass(reader)
        if found is None:
            return
        made = reader.emit("backward", COMPUTE, *found, [], str(device_of(gradient)))
        if made.op is not None:
            reader.born_by(gradient, made.op)


def _backward_pass(reader: Reader) -> tuple[ast.Call, Activation] | None:
    """Return the one backward pass of the functions that still run, else of the user's files."""
    for run in reader.user_activations():
        calls = [call for each in statements(run.body) for call in calls_in(each) if called_name(call) == "backward"]
        calls = list({id(call): call for call in calls}.values())
        if calls:
            return (calls[0], run.at_node(calls[0])) if len(calls) == 1 else None
    found = [(call, run) for run in reader.files() for call in index_of(run.source).calls.get("backward", ())]
    return (found[0][0], run_around(reader, *found[0])) if len(found) == 1 else None
