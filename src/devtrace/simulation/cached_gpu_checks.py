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
    kept = []
    for name, cached in _cached_functions():
        if not cached.cache_info().currsize or not _asks(cached, _DEPTH):
            continue
        if all(map(_is_plain, _answers(cached))):
            cached.cache_clear()
        else:
            kept.append(name)
    return kept


_NOT_ASKED: Final = frozenset({"torch", "devtrace", *sys.stdlib_module_names} - {"__main__"})


def _cached_functions() -> Iterator[tuple[str, functools._lru_cache_wrapper[Any]]]:
    """Yield functions and methods of other packages. Each simulation asks twice, and an installed package stays."""
    for module, loaded in list(sys.modules.items()):
        if module.partition(".")[0] in _NOT_ASKED or not issubclass(type(loaded), ModuleType):
            continue
        names = object.__getattribute__(loaded, "__dict__")  # a lazy module loads when it is asked
        file = names.get("__file__")
        if type(file) is not str or "site-packages" not in file:
            yield from _defined_in(module, names)
            continue
        if _INSTALLED.get(module, (0, ()))[0] != len(names):
            _INSTALLED[module] = len(names), tuple(_defined_in(module, names))
        yield from _INSTALLED[module][1]


def _defined_in(module: str, names: dict[str, Any]) -> Iterator[tuple[str, functools._lru_cache_wrapper[Any]]]:
    """Yield the functions that a module defines, not those that it imports."""
    values = list(names.values())
    for kind in [each for each in values if issubclass(type(each), type)]:
        inner = type.__getattribute__(kind, "__dict__")
        values += inner.values() if inner.get("__module__") == module else ()
    for each in values:
        if type(each) in _HOLDERS:
            cached = each if type(each) is _Cached else each.__func__
            own = cached.__wrapped__ if type(cached) is _Cached else None
            if type(own) is FunctionType and own.__module__ == module:
                yield f"{module}.{own.__qualname__}", cached


def _asks(function: object, depth: int) -> bool:
    """Return whether a function's code, or that of a function of its module that it calls, asks for a GPU."""
    own = function.__wrapped__ if type(function) is _Cached else function
    if type(own) is not FunctionType:
        return False
    for code in codes_in(own.__code__):
        names = set(code.co_names)
        if names & _DEVICES and names & _QUESTIONS:
            return True
        if depth and any(_asks(own.__globals__.get(name), depth - 1) for name in names):
            return True
    return False


def _answers(cached: functools._lru_cache_wrapper[Any]) -> Iterable[object]:
    """Answers of a cache, which only the garbage collector can list. A cache with a limit lists its keys too."""
    for each in gc.get_referents(cached):
        if each is cached.__wrapped__ or each is vars(cached) or isinstance(each, type) or type(each) is object:
            continue
        if type(each) is dict:
            yield from (value for value in each.values() if type(value).__name__ != "_lru_list_elem")
        else:
            yield each


def _is_plain(value: object) -> bool:
    if type(value) in _SEVERAL:
        return all(map(_is_plain, value))  # type: ignore[call-overload]
    if type(value) is dict:
        return all(map(_is_plain, (*value, *value.values())))
    return type(value) in _PLAIN or type(value) is object  # the mark between a key's arguments and its keywords
