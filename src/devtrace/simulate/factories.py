"""`device=` of the functions that make tensors: numbers, strings and devices without an index become what they mean.

torch's C++ asks its own accelerator what `device=0` means and which index `cuda` has, and there is none. The functions
themselves need no help: they reach the dispatch mode with the device as asked.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._device import DeviceContext, _device_constructors

from devtrace.simulate.patches import Patches
from devtrace.simulate.tensors import Resolve, device


def install(patches: Patches, resolve: Resolve) -> None:
    """Wrap every constructor that `with torch.device(...)` knows, where `torch` itself holds it."""
    constructors = _device_constructors()  # cached by torch: asked before any of them is wrapped
    for name, function in list(vars(torch).items()):
        if callable(function) and _hashable(function) and function in constructors:
            wrap = _converts_data if name in ("tensor", "as_tensor", "asarray") else _makes
            patches.set(torch, name, wrap(function, resolve))
    patches.set(DeviceContext, "__torch_function__", _with_index(resolve))


def _hashable(function: object) -> bool:
    return type(function).__hash__ is not None


def _makes(function: Callable[..., Any], resolve: Resolve) -> Callable[..., Any]:
    @functools.wraps(function)
    def make(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("device") is not None:
            kwargs["device"] = resolve(kwargs["device"])
        return function(*args, **kwargs)

    return make


def _converts_data(function: Callable[..., Any], resolve: Resolve) -> Callable[..., Any]:
    """`torch.tensor` and its kin: a tensor given as data keeps its device, which C++ does not know."""
    make = _makes(function, resolve)

    @functools.wraps(function)
    def convert(data: Any = None, *args: Any, **kwargs: Any) -> Any:
        if isinstance(data, torch.Tensor) and kwargs.get("device") is None and device(data).type == "cuda":
            kwargs["device"] = device(data)
        return make(data, *args, **kwargs)

    return convert


def _with_index(resolve: Resolve) -> Callable[..., Any]:
    original = DeviceContext.__torch_function__

    def torch_function(self: DeviceContext, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _device_constructors() and kwargs.get("device") is None:
            kwargs = {**kwargs, "device": resolve(self.device)}
        return original(self, func, types, args, kwargs)  # type: ignore[no-untyped-call]

    return torch_function
