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
    Given,
    arguments,
    function_of,
    given_by_call,
    results_of,
    returned,
    run_of,
    stored_in,
)
from devtrace.explaining.reading.values import Activation, Definition, KnownValue, Several, TensorValue, Value
from devtrace.recording.columns.operator_info import COMPUTE, COPY, CREATE, VIEW
from devtrace.recording.context.module_tree import class_attribute, is_module
from devtrace.runtime.quiet import device_of, dtype_of
from devtrace.source.element_types import OF_WEIGHTS, is_cast
from devtrace.source.matching import called_name, hands_on, match_code, variable
from devtrace.source.object_walk import registered
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


class Written(NamedTuple):
    """A call in the source, and the run of the function that it is in."""

    node: ast.Call
    activation: Activation

    @property
    def words(self) -> dict[str, ast.expr]:
        return {word.arg: word.value for word in self.node.keywords if word.arg}

    def given_device(self, reader: Reader) -> str | None:
        """Return the `device=` of the call, empty if it cannot be read; None where it has none."""
        given = self.words.get("device")
        if given is None or match_code("None", given) is not None:
            return None if all(word.arg for word in self.node.keywords) else self._device_of_words(reader)
        return reader.named_device(reader.see(given, self.activation))

    def _device_of_words(self, reader: Reader) -> str | None:
        """Return the device in `**options`; empty where they cannot be read."""
        options = [reader.see(word.value, self.activation) for word in self.node.keywords if word.arg is None]
        for each in options:
            if isinstance(each, Several) and each.keys:
                return reader.named_device(each.item("device")) if "device" in each.keys else None
            if isinstance(each, KnownValue) and type(each.value) is dict:
                device = each.value.get("device")
                return reader.named_device(KnownValue(device)) if device is not None else None
        return ""

    def tensors(self, reader: Reader) -> list[TensorValue]:
        return reader.tensors((*self.node.args, *self.words.values()), self.activation)


def call_torch(reader: Reader, name: str, call: Written) -> Value | None:
    """Return the result of a torch function; None if it is no tensor made of the inputs."""
    if name in MAKES or name in MAKES_ON_HOST:
        return _make(reader, name, call)
    inputs = call.tensors(reader)
    if not inputs:
        return None
    if name.endswith("_like"):
        return _make(reader, name, call, inputs[0])
    return reader.derived(f"aten.{name}", _kind(name), call.node, call.activation, inputs)


def _make(reader: Reader, name: str, call: Written, like: TensorValue | None = None) -> Value | None:
    """Return the result of a factory: on its `device=`, else where the tensor is that it is like, or by default."""
    node, activation = call
    device, dtype = call.given_device(reader), reader.asked_dtype(node, activation)
    is_asked = "dtype" in call.words
    if device is None and name in OF_DATA and node.args:
        given = reader.see(node.args[0], activation)
        if isinstance(given, TensorValue) and dtype in (None, given.dtype):
            return given
    if device == "":
        return None
    if like is not None:
        device, dtype = device or like.device, dtype if is_asked else like.dtype
    elif device is None:
        device = "cpu" if name in MAKES_ON_HOST else _default_device(reader, node, activation)
    if like is None and not is_asked:
        values = [reader.see(each, activation) for each in node.args] if reader.of_dtypes else []
        dtype = element_types.of_factory(name, node.args, values)
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


def call_method(reader: Reader, owner: TensorValue, name: str, call: Written) -> Value | None:
    """Return the result of a tensor's method."""
    if name in READS or name in DESCRIBES:
        return None
    if is_move(name) or (reader.of_dtypes and is_cast(name)):
        return _move(reader, owner, name, call)
    if name.startswith("new_"):
        return _make(reader, name, call, owner)
    made = reader.derived(f"aten.{name}", _kind(name), call.node, call.activation, [owner, *call.tensors(reader)])
    return owner if changes_itself(name) else made


def _kind(name: str) -> int:
    return COPY if name in COPIES else VIEW if name in VIEWS else COMPUTE


def _move(reader: Reader, owner: TensorValue, name: str, call: Written) -> Value | None:
    node, words, activation = call.node, call.words, call.activation
    asked = [*node.args[:1], *(words[word] for word in ("device", "other") if word in words)]
    values = [reader.see(each, activation) for each in asked]
    device = "cpu" if name == "cpu" else next(filter(None, map(reader.named_device, values)), "")
    if name in kinds() and not device:
        device = in_full(name)
    if reader.of_dtypes:  # `x.to(device, dtype)`
        values += [reader.see(each, activation) for each in (*node.args[1:2], words.get("dtype"))]
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
        others = [each for each in reader.devices if each != device]  # `x` before `x = x.to(device)`
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
    if isinstance(node.func, ast.Attribute):
        owner = reader.see(node.func.value, activation)
        if isinstance(owner, TensorValue):
            return call_method(reader, owner, node.func.attr, Written(node, activation))
        if isinstance(owner, Several) or (isinstance(owner, KnownValue) and type(owner.value) is dict):
            return _call_container(reader, owner, node.func.attr, node, activation)
        name = node.func.attr
        if isinstance(owner, KnownValue) and type(owner.value) in (list, deque) and name in ("pop", "popleft"):
            runs = reader.live_activations()  # which put into it what is popped
            return reader.first(made for run in runs for made in stored_in(reader, run, owner.value))
        if isinstance(owner, KnownValue) and is_module(owner.value) and (name in OF_MODULES or gives_itself(name)):
            return _of_module(reader, owner, name)
    if variable(node.func) in ("getattr", "next"):
        return _call_builtin(reader, node, activation)
    function = reader.see(node.func, activation)
    if function is None and variable(node.func) in {each.__name__ for each in _SEQUENCES}:
        return _call_sequence(reader, node, activation)
    return _call(reader, function.value, Written(node, activation)) if isinstance(function, KnownValue) else None


def _call(reader: Reader, value: Any, call: Written) -> Value | None:
    if is_module(value):
        return _call_module(reader, value, call)
    if issubclass(type(value), type):
        return _call_class(reader, value, call)
    value = _handed_on_to(reader, value, call.activation)
    function, before = function_of(value)
    if function is not None:
        return returned(reader, function, given_by_call(reader, function, before, *call), call.activation)
    name = value if type(value) is str else _name(value)
    return call_torch(reader, name, call) if name is not None else None


def _handed_on_to(reader: Reader, value: Any, activation: Activation) -> Any:
    """Return the function to which a dispatcher or decorator passes all its arguments; else the value itself.

    Of `getattr(backend, name)` with an unknown backend: the name of a factory.
    """
    function, before = function_of(value)
    if function is None:
        return value
    run = run_of(reader, function, dict(zip(function.__code__.co_varnames, before, strict=False)), activation)
    known = (*function.__code__.co_varnames, *function.__code__.co_freevars)
    last = next(iter(results_of(run)), None)
    call = last.node if last is not None else None
    if last is None or not hands_on(call, known):
        return value
    called = reader.known(call.func, last.activation)
    if called is not MISSING:
        own = before[0] if before and type(called) is FunctionType and len(call.args) > 1 else None
        return MethodType(called, own.value) if isinstance(own, KnownValue) else called
    looked_up = match_code("getattr($owner, $name)", call.func)
    name = reader.known(looked_up["name"], last.activation) if looked_up is not None else None
    return name if type(name) is str and name in MAKES else value


def definitions_of_call(reader: Reader, node: ast.Call, activation: Activation) -> Iterator[Definition]:
    """Yield the expressions that a function of the user's or of a package's returns."""
    called = _handed_on_to(reader, reader.known(node.func, activation), activation)
    function, before = function_of(called)
    if function is not None:
        given = given_by_call(reader, function, before, node, activation)
        yield from results_of(run_of(reader, function, given, activation))


def _name(value: Any) -> str | None:
    """Return the name of a function of torch's, empty for a method; None for what is not torch's."""
    function = value.__func__ if type(value) is MethodType else value
    if type(function) is not FunctionType:
        return torch_name(value) or None
    name = function.__name__ if function is value else ""
    return name if is_torch_or_ours(function.__code__.co_filename) else None


def _call_builtin(reader: Reader, node: ast.Call, activation: Activation) -> Value | None:
    """Return `getattr(owner, "name")`, and what `next(iterator)` gives."""
    if getattr(node.func, "id", "") == "next":
        made = node.args[0] if node.args else None
        return reader.part(reader.see(made, activation), (0,), node, activation)
    if len(node.args) < 2:
        return None
    owner, name = reader.known(node.args[0], activation), reader.known(node.args[1], activation)
    return member(reader, owner, name, activation) if owner is not MISSING and type(name) is str else None


def _call_sequence(reader: Reader, node: ast.Call, activation: Activation) -> Value | None:
    """Return the result of `list(x)` and its kin: builtins are in no scope."""
    if node.args:
        return reader.see(node.args[0], activation)
    keys = tuple(word.arg for word in node.keywords)
    return Several(tuple(reader.see(word.value, activation) for word in node.keywords), keys)


def _call_container(
    reader: Reader, owner: Several | KnownValue, name: str, node: ast.Call, activation: Activation
) -> Value | None:
    """Return `batch.get("mask")`, `batch.values()` and the like of a dictionary, which may be gone."""
    if name in ("get", "pop", "setdefault") and node.args:
        return _item(reader, owner, *(reader.see(each, activation) for each in node.args[:2]))
    if name not in ("values", "items", "copy"):
        return None
    if isinstance(owner, KnownValue):
        owner = Several(tuple(map(reader.value, list(owner.value.values())[:32])))
    if name == "items":
        return Several(tuple(Several((None, each)) for each in owner.items))
    return owner if name == "copy" else Several(owner.items)


def _item(reader: Reader, owner: Several | KnownValue, key: Value | None, given: Value | None = None) -> Value | None:
    """Return `batch["mask"]`; without such a key what was given as `x` in `batch.get("mask", x)`."""
    if not isinstance(key, KnownValue) or type(key.value) not in (str, int):
        return None
    if isinstance(owner, Several):
        return owner.item(key.value) or given
    found = dict.get(owner.value, key.value)
    return reader.value(found) if found is not None else given


def _of_module(reader: Reader, owner: KnownValue, name: str) -> Value:
    """Return the result of a method of nn.Module: the module itself, or its tensors."""
    if gives_itself(name):
        return owner
    found = {path: reader.value(tensor) for path, tensor in islice(registered(owner.value), MOST_ITEMS)}
    if not name.startswith("named_"):
        return Several(tuple(found.values()), tuple(found) if name == "state_dict" else ())
    return Several(tuple(Several((KnownValue(path), value)) for path, value in found.items()))


def _call_class(reader: Reader, kind: type, call: Written) -> Value | None:
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
    if kind.__module__.startswith("torch.distributions."):  # what it gives is where its parameters are
        return call_torch(reader, "broadcast_to", call) or _make(reader, "full", call)
    if kind is functools.partial:
        given = Given.by(reader, *call)
        return Several(tuple(given._replace(values=given.values[1:]).to_hook(with_words=True)), ("args", "keywords"))
    fields = constructor_fields(kind)
    by_field = dict(zip(fields, node.args, strict=False)) | call.words if fields else {}
    values = tuple(reader.see(each, activation) for each in by_field.values())
    return Several(values, tuple(by_field)) if by_field else None


def _call_module(reader: Reader, module: Any, call: Written) -> Value | None:
    """Return the result of a module's call, hooks included."""
    given, _ = hooks.given_to_forward(reader, module, Given.by(reader, *call), call.activation)
    made = _forwarded(reader, module, given, call)
    return hooks.given_by_module(reader, module, given, made, call.activation)


def _forwarded(reader: Reader, module: Any, given: Given, call: Written) -> Value | None:
    """Return the output of a module: by its own forward, else on the device of its first parameter."""
    node, activation = call
    forward, _ = function_of(class_attribute(type(module), "forward"))
    if forward is not None:
        own_given = arguments(forward, [KnownValue(module), *given.values], given.words)
        made = returned(reader, forward, own_given, activation)
        if made is not None:
            return made
    inputs = [each for value in given.values for each in reader.members(value)]
    first = next((tensor for _, tensor in registered(module)), None)
    if first is not None:
        dtype = None if forward else element_types.of_module(module, dtype_of(first), inputs, activation.source)
        parents = [*inputs, reader.live(first)]
        return reader.emit(OF_WEIGHTS, COMPUTE, node, activation, parents, str(device_of(first)), 1, dtype)
    return reader.derived(WITHOUT_WEIGHTS, COMPUTE, node, activation, inputs) if inputs else None
