"""Finds out what a call returned: of a module or class, of a user's or a package's function, of a function of torch."""

from __future__ import annotations

import ast
import functools
from collections import deque
from collections.abc import Iterator
from itertools import islice
from types import FunctionType, MethodType
from typing import Any, Final, NamedTuple

import torch

from devtrace.explaining.reading import element_types, hooks
from devtrace.explaining.reading.attributes import member
from devtrace.explaining.reading.expressions import computed
from devtrace.explaining.reading.reader import MOST_ITEMS, SOUGHT_TENSOR, Reader
from devtrace.explaining.reading.returned_calls import (
    CallInputs,
    arguments,
    arguments_of_call,
    function_of,
    result_of_function,
    results_of,
    run_of,
    stored_in,
)
from devtrace.explaining.reading.values import Activation, Definition, KnownValue, Several, TensorValue, Value
from devtrace.recording.columns.operator_info import COMPUTE, COPY, CREATE, VIEW
from devtrace.recording.context.module_tree import class_attribute, is_module
from devtrace.runtime.quiet import device_of, dtype_of
from devtrace.source.element_types import OF_WEIGHTS, is_cast
from devtrace.source.matching import called_name, hands_on, match_code, variable
from devtrace.source.object_walk import members, registered
from devtrace.source.safe_values import MISSING, constructor_fields
from devtrace.source.user_code import is_torch_or_ours
from devtrace.source.vocabulary import (
    COPIES,
    DESCRIBES,
    MAKES,
    MAKES_ON_HOST,
    OF_DATA,
    OF_MODULES,
    READS,
    VIEWS,
    changes_itself,
    gives_itself,
    in_full,
    is_move,
    kinds,
    torch_name,
)


class WrittenCall(NamedTuple):
    """A call in the source, and the run of the function that it is in."""

    node: ast.Call
    activation: Activation

    @property
    def words(self) -> dict[str, ast.expr]:
        return {word.arg: word.value for word in self.node.keywords if word.arg}

    def given_device(self, reader: Reader) -> str | None:
        """Return the `device=` of the call, empty if it cannot be read; None where it has none."""
        node = self.words.get("device")
        if node is None or match_code("None", node) is not None:
            return None if all(word.arg for word in self.node.keywords) else self._device_of_words(reader)
        return reader.named_device(reader.see(node, self.activation))

    def _device_of_words(self, reader: Reader) -> str | None:
        """Return the device in `**options`; empty where they cannot be read."""
        options = [reader.see(word.value, self.activation) for word in self.node.keywords if word.arg is None]
        for option in options:
            if isinstance(option, Several) and option.keys:
                return reader.named_device(option.item("device")) if "device" in option.keys else None
            if isinstance(option, KnownValue) and type(option.value) is dict:
                device = option.value.get("device")
                return reader.named_device(KnownValue(device)) if device is not None else None
        return ""

    def tensors(self, reader: Reader) -> list[TensorValue]:
        return reader.tensors((*self.node.args, *self.words.values()), self.activation)


def call_torch(reader: Reader, name: str, call: WrittenCall) -> Value | None:
    """Return the result of a torch function; None if it is no tensor made of the inputs."""
    if name in MAKES or name in MAKES_ON_HOST:
        return _emit_factory(reader, name, call)
    inputs = call.tensors(reader)
    if not inputs:
        return None
    if name.endswith("_like"):
        return _emit_factory(reader, name, call, inputs[0])
    return reader.derived(f"aten.{name}", _op_kind(name), call.node, call.activation, inputs)


def _emit_factory(reader: Reader, name: str, call: WrittenCall, like: TensorValue | None = None) -> Value | None:
    """Return a factory's result (`torch.zeros`): on its `device=`, else beside `like`, else on the default device."""
    node, activation = call
    device, dtype = call.given_device(reader), reader.asked_dtype(node, activation)
    is_asked = "dtype" in call.words
    if device is None and name in OF_DATA and node.args:
        data = reader.see(node.args[0], activation)
        if isinstance(data, TensorValue) and dtype in (None, data.dtype):
            return data
    if device == "":  # its `device=` cannot be read
        return None
    if like is not None:
        device, dtype = device or like.device, dtype if is_asked else like.dtype
    elif device is None:
        device = "cpu" if name in MAKES_ON_HOST else _default_device(reader, node, activation)
    if like is None and not is_asked:
        values = [reader.see(value, activation) for value in node.args] if reader.of_dtypes else []
        dtype = element_types.of_factory(name, node.args, values, activation.source)
    inputs = [like] if like is not None else []
    return reader.emit(f"aten.{name}", CREATE, node, activation, inputs, device or "", 1, dtype)


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


def call_method(reader: Reader, owner: TensorValue, name: str, call: WrittenCall) -> Value | None:
    """Return the result of a tensor's method."""
    if name in READS or name in DESCRIBES:
        return None
    if is_move(name) or (reader.of_dtypes and is_cast(name)):
        return _emit_move(reader, owner, name, call)
    if name.startswith("new_"):
        return _emit_factory(reader, name, call, owner)
    result = reader.derived(f"aten.{name}", _op_kind(name), call.node, call.activation, [owner, *call.tensors(reader)])
    return owner if changes_itself(name) else result


def _op_kind(name: str) -> int:
    return COPY if name in COPIES else VIEW if name in VIEWS else COMPUTE


def _emit_move(reader: Reader, owner: TensorValue, name: str, call: WrittenCall) -> Value | None:
    """Return the result of `x.to(device, dtype)`, `x.cuda()` or `x.half()`: x itself if it is there already."""
    node, words, activation = call.node, call.words, call.activation
    nodes = [*node.args[:1], *(words[word] for word in ("device", "other") if word in words)]
    values = [reader.see(argument, activation) for argument in nodes]
    device = "cpu" if name == "cpu" else next(filter(None, map(reader.named_device, values)), "")
    if name in kinds() and not device:
        device = in_full(name)
    if reader.of_dtypes:  # `x.to(device, dtype)`
        values += [reader.see(argument, activation) for argument in (*node.args[1:2], words.get("dtype"))]
    dtype = element_types.cast_to(name, values) if reader.of_dtypes else None
    if dtype is not None and device in ("", owner.device):
        device = owner.device
        if owner.row == SOUGHT_TENSOR:  # `x = x.half()`
            before = torch.float16 if dtype == torch.float32 else torch.float32
            owner = reader.emit("", COMPUTE, node, activation, [], device, owner.dims, before)
        if owner.dtype == dtype:
            return owner
    elif not device:  # `.to(torch.float16)`, or something that cannot be read
        return None if any(value is None for value in values) else owner
    elif owner.row == SOUGHT_TENSOR:
        others = [other for other in reader.devices if other != device]  # `x` before `x = x.to(device)`
        owner = reader.unknown_tensor(others[0]) if len(others) == 1 and device in reader.devices else owner
    if device == owner.device and dtype is None:
        like = values[0] if values else None
        if isinstance(like, TensorValue) and owner.op is not None and owner.op.kind == CREATE:
            owner.op.name, owner.op.inputs = "aten.new_empty", [like.row]  # `torch.zeros(n).to(x)` is where x is
        return owner
    return reader.emit("aten._to_copy", COPY, node, activation, [owner], device, owner.dims, dtype or owner.dtype)


WITHOUT_WEIGHTS: Final = "module without weights"
_SEQUENCES: Final = (list, tuple, dict, iter, reversed, sorted)


def read_call(reader: Reader, node: ast.Call, activation: Activation) -> Value | None:
    """Return the value of a call: by the kind of the object before the dot, else by the function itself."""
    if isinstance(node.func, ast.Attribute):
        owner = reader.see(node.func.value, activation)
        if isinstance(owner, TensorValue):
            return call_method(reader, owner, node.func.attr, WrittenCall(node, activation))
        if isinstance(owner, Several) or (isinstance(owner, KnownValue) and type(owner.value) is dict):
            return _call_container(reader, owner, node.func.attr, node, activation)
        name = node.func.attr
        if isinstance(owner, KnownValue) and type(owner.value) in (list, deque) and name in ("pop", "popleft"):
            runs = reader.live_activations()  # one of them stored what is popped
            return reader.first(stored for run in runs for stored in stored_in(reader, run, owner.value))
        if isinstance(owner, KnownValue) and is_module(owner.value) and (name in OF_MODULES or gives_itself(name)):
            return _call_module_method(reader, owner, name)
    if variable(node.func) in ("getattr", "next"):
        return _call_builtin(reader, node, activation)
    function = reader.see(node.func, activation)
    if function is None and variable(node.func) in {kind.__name__ for kind in _SEQUENCES}:  # builtins are in no scope
        return _call_sequence(reader, node, activation)
    return _call(reader, function.value, WrittenCall(node, activation)) if isinstance(function, KnownValue) else None


def _call(reader: Reader, value: Any, call: WrittenCall) -> Value | None:
    """Return what a call of `value` gives: a module, a class, a function in Python, or one of torch by its name."""
    if is_module(value):
        return _call_module(reader, value, call)
    if issubclass(type(value), type):
        return _call_class(reader, value, call)
    value = _function_behind(reader, value, call.activation)
    function, before = function_of(value)
    if function is not None:
        return result_of_function(reader, function, arguments_of_call(reader, function, before, *call), call.activation)
    name = value if type(value) is str else _name_in_torch(value)
    if type(value) is MethodType and (parameters := _parameters_of(reader, value.__self__)):
        return reader.derived("aten.sample", COMPUTE, *call, parameters)
    return call_torch(reader, name, call) if name is not None else None


def _parameters_of(reader: Reader, owner: Any) -> list[TensorValue]:
    """Return the tensors of a distribution of torch's, and of the one that it wraps."""
    is_distribution = type(owner).__module__.startswith("torch.distributions.")
    parts = [step.value for step in members(owner)] if is_distribution else []
    return [tensor for part in parts for tensor in reader.members(reader.value(part)) or _parameters_of(reader, part)]


def _function_behind(reader: Reader, value: Any, activation: Activation) -> Any:
    """Return the function to which a dispatcher or decorator passes all its arguments; else the value itself.

    For `getattr(backend, name)(*args)` with an unknown backend return the name, if it is that of a factory.
    """
    function, before = function_of(value)
    if function is None:
        return value
    run = run_of(reader, function, dict(zip(function.__code__.co_varnames, before, strict=False)), activation)
    variables = (*function.__code__.co_varnames, *function.__code__.co_freevars)
    result = next(iter(results_of(run)), None)
    call = result.node if result is not None else None
    if result is None or not hands_on(call, variables):
        return value
    called = reader.known(call.func, result.activation)
    if called is not MISSING:
        self_value = before[0] if before and type(called) is FunctionType and len(call.args) > 1 else None
        return MethodType(called, self_value.value) if isinstance(self_value, KnownValue) else called
    looked_up = match_code("getattr($owner, $name)", call.func)
    name = reader.known(looked_up["name"], result.activation) if looked_up is not None else None
    return name if type(name) is str and name in MAKES else value


def definitions_of_call(reader: Reader, node: ast.Call, activation: Activation) -> Iterator[Definition]:
    """Yield the expressions that a function of the user's or of a package's returns."""
    called = _function_behind(reader, reader.known(node.func, activation), activation)
    function, before = function_of(called)
    if function is not None:
        bound = arguments_of_call(reader, function, before, node, activation)
        yield from results_of(run_of(reader, function, bound, activation))


def _name_in_torch(value: Any) -> str | None:
    """Return the name of a function of torch's, empty for a method; None for what is not torch's."""
    function = value.__func__ if type(value) is MethodType else value
    if type(function) is not FunctionType:
        return torch_name(value) or None
    name = function.__name__ if function is value else ""
    return name if is_torch_or_ours(function.__code__.co_filename) else None


def _call_builtin(reader: Reader, node: ast.Call, activation: Activation) -> Value | None:
    """Return `getattr(owner, "name")`, and what `next(iterator)` gives."""
    if getattr(node.func, "id", "") == "next":
        iterator = node.args[0] if node.args else None
        return reader.part(reader.see(iterator, activation), (0,), node, activation)
    if len(node.args) < 2:
        return None
    owner, name = reader.known(node.args[0], activation), reader.known(node.args[1], activation)
    return member(reader, owner, name, activation) if owner is not MISSING and type(name) is str else None


def _call_sequence(reader: Reader, node: ast.Call, activation: Activation) -> Value | None:
    """Return the result of `list(x)`, `dict(a=x)` and the like."""
    if node.args:
        return reader.see(node.args[0], activation)
    keys = tuple(word.arg for word in node.keywords)
    return Several(tuple(reader.see(word.value, activation) for word in node.keywords), keys)


def _call_container(
    reader: Reader, owner: Several | KnownValue, name: str, node: ast.Call, activation: Activation
) -> Value | None:
    """Return `batch.get("mask")`, `batch.values()` and the like of a dictionary, which may be gone."""
    if name in ("get", "pop", "setdefault") and node.args:
        return _get(reader, owner, *(reader.see(argument, activation) for argument in node.args[:2]))
    if name not in ("values", "items", "copy"):
        return None
    if isinstance(owner, KnownValue):
        owner = Several(tuple(map(reader.value, list(owner.value.values())[:32])))
    if name == "items":
        return Several(tuple(Several((None, item)) for item in owner.items))
    return owner if name == "copy" else Several(owner.items)


def _get(reader: Reader, owner: Several | KnownValue, key: Value | None, default: Value | None = None) -> Value | None:
    """Return `batch["mask"]`; without such a key the default, `x` of `batch.get("mask", x)`."""
    if not isinstance(key, KnownValue) or type(key.value) not in (str, int):
        return None
    if isinstance(owner, Several):
        return owner.item(key.value) or default
    item = dict.get(owner.value, key.value)
    return reader.value(item) if item is not None else default


def _call_module_method(reader: Reader, owner: KnownValue, name: str) -> Value:
    """Return the result of a method of nn.Module: the module itself, or its tensors."""
    if gives_itself(name):
        return owner
    tensors = {path: reader.value(tensor) for path, tensor in islice(registered(owner.value), MOST_ITEMS)}
    if not name.startswith("named_"):
        return Several(tuple(tensors.values()), tuple(tensors) if name == "state_dict" else ())
    return Several(tuple(Several((KnownValue(path), value)) for path, value in tensors.items()))


def _call_class(reader: Reader, kind: type, call: WrittenCall) -> Value | None:
    node, activation = call
    if kind in _SEQUENCES:
        return _call_sequence(reader, node, activation)
    if issubclass(kind, torch.nn.Parameter):
        return computed(reader, "Parameter", node, [*node.args, *call.words.values()], activation)
    if kind.__name__ == "device" and kind.__module__.partition(".")[0] in ("torch", "devtrace") and node.args:
        device = reader.named_device(reader.see(node.args[0], activation))
        return KnownValue(torch._C.device(device)) if device else None
    if issubclass(kind, torch.Tensor):
        return call_torch(reader, "tensor", call)
    if kind.__module__.startswith("torch.distributions."):  # its samples are where its parameters are
        return call_torch(reader, "broadcast_to", call) or _emit_factory(reader, "full", call)
    if kind is functools.partial:
        passed = CallInputs.by(reader, *call)
        return Several(tuple(passed._replace(values=passed.values[1:]).to_hook(with_words=True)), ("args", "keywords"))
    fields = constructor_fields(kind)
    by_field = dict(zip(fields, node.args, strict=False)) | call.words if fields else {}
    values = tuple(reader.see(argument, activation) for argument in by_field.values())
    return Several(values, tuple(by_field)) if by_field else None


def _call_module(reader: Reader, module: Any, call: WrittenCall) -> Value | None:
    """Return the result of a module's call, hooks included."""
    passed, _ = hooks.arguments_of_forward(reader, module, CallInputs.by(reader, *call), call.activation)
    output = _output_of_forward(reader, module, passed, call)
    return hooks.result_of_module(reader, module, passed, output, call.activation)


def _output_of_forward(reader: Reader, module: Any, passed: CallInputs, call: WrittenCall) -> Value | None:
    """Return the output of a module: by its own forward, else on the device of its first parameter."""
    node, activation = call
    forward, _ = function_of(class_attribute(type(module), "forward"))
    if forward is not None:
        bound = arguments(forward, [KnownValue(module), *passed.values], passed.words)
        output = result_of_function(reader, forward, bound, activation)
        if output is not None:
            return output
    inputs = [tensor for value in passed.values for tensor in reader.members(value)]
    first = next((tensor for _, tensor in registered(module)), None)
    if first is not None:
        dtype = None if forward else element_types.of_module(module, dtype_of(first), inputs, activation.source)
        parents = [*inputs, reader.live(first)]
        return reader.emit(OF_WEIGHTS, COMPUTE, node, activation, parents, str(device_of(first)), 1, dtype)
    return reader.derived(WITHOUT_WEIGHTS, COMPUTE, node, activation, inputs) if inputs else None
