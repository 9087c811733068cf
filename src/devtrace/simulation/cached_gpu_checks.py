"""Answers of other packages that they keep: "no GPU", from before a simulation, and "a GPU", from within one.

A function under functools.lru_cache or cache whose code asks for a GPU is asked again, where its answers are plain
values. An answer that is an object of its own stays, as somebody may hold it. A module's own constant stays too.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Iterable, Iterator
from types import FunctionType, ModuleType
from typing import Any, Final

import torch

from devtrace.runtime.tracebacks import codes_in

_DEVICES: Final = frozenset({"cuda", "accelerator"})
_QUESTIONS: Final = frozenset((
    "is_available", "device_count", "current_accelerator", "current_device", "get_device_capability",
    "get_device_name", "get_device_properties", "is_bf16_supported", "mem_get_info",
))  # fmt: skip
_PLAIN: Final = (type(None), bool, int, float, str, bytes, torch.device, torch.dtype)
_SEVERAL: Final = (tuple, list, set, frozenset)
_DEPTH: Final = 3  # functions that call functions that ask
_Cached: Final = functools._lru_cache_wrapper
_HOLDERS: Final = (_Cached, staticmethod, classmethod)
_INSTALLED: Final[dict[str, tuple[int, tuple[tuple[str, functools._lru_cache_wrapper[Any]], ...]]]] = {}
"""Functions of installed modules, by the number of names that the module had: it may get more of them."""


def forget() -> list[str]:
    """Clear what can be cleared, and return the names of the functions that keep their answers."""
    names = []
    for name, cached in _cached_functions():
        if not cached.cache_info().currsize or not _asks_for_gpu(cached, _DEPTH):
            continue
        if all(map(_is_plain, _cached_answers(cached))):
            cached.cache_clear()
        else:
            names.append(name)
    return names


_NOT_ASKED: Final = frozenset({"torch", "devtrace", *sys.stdlib_module_names} - {"__main__"})


def _cached_functions() -> Iterator[tuple[str, functools._lru_cache_wrapper[Any]]]:
    """Yield cached functions of other packages by name; an installed module is looked through once, as it stays."""
    for module, loaded in list(sys.modules.items()):
        if module.partition(".")[0] in _NOT_ASKED or not issubclass(type(loaded), ModuleType):
            continue
        namespace = object.__getattribute__(loaded, "__dict__")  # a lazy module loads when it is asked
        file = namespace.get("__file__")
        if type(file) is not str or "site-packages" not in file:
            yield from _defined_in(module, namespace)
            continue
        if _INSTALLED.get(module, (0, ()))[0] != len(namespace):
            _INSTALLED[module] = len(namespace), tuple(_defined_in(module, namespace))
        yield from _INSTALLED[module][1]


def _defined_in(module: str, namespace: dict[str, Any]) -> Iterator[tuple[str, functools._lru_cache_wrapper[Any]]]:
    """Yield the functions that a module defines, not those that it imports."""
    values = list(namespace.values())
    for kind in [value for value in values if issubclass(type(value), type)]:
        inner = type.__getattribute__(kind, "__dict__")
        values += inner.values() if inner.get("__module__") == module else ()
    for value in values:
        if type(value) in _HOLDERS:
            cached = value if type(value) is _Cached else value.__func__
            function = cached.__wrapped__ if type(cached) is _Cached else None
            if type(function) is FunctionType and function.__module__ == module:
                yield f"{module}.{function.__qualname__}", cached


def _asks_for_gpu(function: object, depth: int) -> bool:
    """Return whether a function's code, or that of a function of its module that it calls, asks for a GPU."""
    plain_function = function.__wrapped__ if type(function) is _Cached else function
    if type(plain_function) is not FunctionType:
        return False
    for code in codes_in(plain_function.__code__):
        names = set(code.co_names)
        if names & _DEVICES and names & _QUESTIONS:
            return True
        if depth and any(_asks_for_gpu(plain_function.__globals__.get(name), depth - 1) for name in names):
            return True
    return False


def _cached_answers(cached: functools._lru_cache_wrapper[Any]) -> Iterable[object]:
    """Answers of a cache, which only the garbage collector can list. A cache with a limit lists its keys too."""
    for entry in gc.get_referents(cached):
        if entry is cached.__wrapped__ or entry is vars(cached) or isinstance(entry, type) or type(entry) is object:
            continue
        if type(entry) is dict:
            yield from (value for value in entry.values() if type(value).__name__ != "_lru_list_elem")
        else:
            yield entry


def _is_plain(value: object) -> bool:
    if type(value) in _SEVERAL:
        return all(map(_is_plain, value))  # type: ignore[call-overload]
    if type(value) is dict:
        return all(map(_is_plain, (*value, *value.values())))
    return type(value) in _PLAIN or type(value) is object  # the mark between a key's arguments and its keywords
