"""A module's parts, read from its tables: no method, property or `__getattr__` of the user's runs."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import Any, Final

import torch

from devtrace.runtime.quiet import is_tensor
from devtrace.runtime.torch_names import take
from devtrace.source.object_walk import beside_torchs
from devtrace.source.safe_values import class_dict, classes_of, full_name_of, instance_dict

Module = torch.nn.Module
_TABLES = ("_parameters", "_buffers", "_modules")
_CONTAINERS = (list, tuple, dict)
MOST_KEPT = 100
_SCRIPT: Any = take("_C.ScriptModule", "module_tree", instead=None)
_dictionary: Any = Module.__dict__["__dict__"].__get__
"""Reads a module's own attributes, whatever its class makes of `__dict__`."""


def is_module(value: object) -> bool:
    return issubclass(type(value), Module)


def subtree(root: Module) -> Iterator[tuple[str, Module]]:
    """Yield a module and all below it with their paths, each once, in the order of `named_modules`."""
    seen: set[int] = set()
    waiting = [("", root)]
    while waiting:
        path, module = waiting.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        yield path, module
        inner = [(f"{path}.{name}" if path else name, child) for name, child in children(module)]
        waiting += reversed(inner)


def children(module: Module) -> Iterator[tuple[str, Module]]:
    yield from ((name, value) for name, value in _table(module, "_modules") if is_module(value))


def own_tensors(module: Module) -> Iterator[tuple[str, str, torch.Tensor]]:
    """Yield a module's own tensors, each with its role and its name in the module."""
    for role, table in (("parameter", "_parameters"), ("buffer", "_buffers")):
        yield from ((role, name, value) for name, value in _table(module, table) if is_tensor(value))
    yield from (("attribute", name, value) for name, value in beside_torchs(attributes(module)) if is_tensor(value))


def kept_tensors(module: Module) -> Iterator[torch.Tensor]:
    """Yield the tensors that a module keeps as plain attributes, those in plain containers of one level too."""
    for value in tuple(_dictionary(module).values()):
        if is_tensor(value):
            yield value
        elif type(value) in _CONTAINERS and value:
            inner = value.values() if type(value) is dict else value
            yield from (item for item in tuple(islice(inner, MOST_KEPT)) if is_tensor(item))


def count_registered(root: Module) -> int:
    """Count the tensors that `.to()` of a module moves, each once. A move of thousands of modules waits for this."""
    tensor_ids: set[int] = set()
    seen, waiting = {id(root)}, [root]
    for module in waiting:  # grows
        own = _dictionary(module)
        parameters, buffers, inner = own.get("_parameters"), own.get("_buffers"), own.get("_modules")
        if type(parameters) is not dict or type(buffers) is not dict or type(inner) is not dict:  # TorchScript's
            parameters, buffers, inner = (dict(_table(module, name)) for name in _TABLES)
        tensor_ids.update(map(id, parameters.values()), map(id, buffers.values()))
        for child in inner.values():
            if child is not None and id(child) not in seen:
                seen.add(id(child))
                waiting.append(child)
    return len(tensor_ids - {id(None)})


def _table(module: Module, name: str) -> list[tuple[str, Any]]:
    entries: Any = _dictionary(module).get(name)
    if issubclass(type(entries), dict):
        return list(dict.items(entries))
    # A module of TorchScript keeps its parts in C++, behind tables of torch's own.
    return list(entries.items()) if full_name_of(type(entries))[0] == "torch.jit._script" else []


def attributes(module: Module) -> Mapping[str, Any]:
    """Return a module's own attributes: `instance_dict` for each call of a module."""
    own: Any = _dictionary(module)
    return own if type(own) is dict else instance_dict(module)


def is_training(module: Module) -> bool:
    own = attributes(module)
    scripted: Any = own.get("_c")
    if type(scripted) is _SCRIPT and scripted.hasattr("training"):
        return bool(scripted.getattr("training"))
    return own.get("training") is True


def has_hooks(module: Module) -> bool:
    own = attributes(module)
    return bool(own.get("_forward_hooks") or own.get("_forward_pre_hooks"))


def class_attribute(kind: type, name: str) -> Any:
    """Return what a class or one above it holds by this name, as it is stored; None for nothing."""
    return next((class_dict(each)[name] for each in classes_of(kind) if name in class_dict(each)), None)


class_name: Final[Callable[[type], str]] = type.__dict__["__name__"].__get__
"""Reads the name of a class without asking its metaclass."""
