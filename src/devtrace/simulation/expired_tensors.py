"""Simulated tensors after the simulation: using one raises, until the next simulation revives it.

They are CPU tensors to torch and would go on computing as such, silently on another device than the program was written
for. So every live one changes its class for one whose `__torch_function__` raises; metadata and `repr` stay readable.
Only tensors that Python knows can be found. One that only an autograd graph refers to raises through the tensors that
refer to the graph.
"""

import functools
import weakref
from typing import Any

import torch

from devtrace.runtime.quiet import kinds_that_outlived_their_device, tensors_alive
from devtrace.simulation.devices import DEVICES
from devtrace.simulation.storage_tags import tag_of
from devtrace.words.errors import SimulateError

_expired: list[weakref.ref[torch.Tensor]] = []
_ended_with = 1
"""How many devices the simulation had that ended last."""

_READABLE = frozenset({
    "shape", "dtype", "layout", "ndim", "requires_grad", "grad", "is_leaf", "grad_fn", "itemsize", "nbytes", "names",
    "is_sparse", "is_quantized", "is_nested", "is_meta", "size", "dim", "numel", "nelement", "stride",
    "storage_offset", "element_size", "untyped_storage", "data_ptr", "is_contiguous", "is_floating_point",
    "is_complex", "__hash__", "__len__",
})  # fmt: skip


class ExpiredTensor:
    """Mixed into the class of a tensor whose simulation has ended."""

    @property
    def device(self) -> torch.device:
        with torch._C.DisableTorchFunctionSubclass():
            owner = tag_of(self).owner
        return owner.device or torch.device("cpu")

    @property
    def is_cuda(self) -> bool:
        return True

    def __repr__(self, **_: Any) -> str:
        shape = tuple(self.shape)  # type: ignore[attr-defined]
        return f"<tensor of shape {shape} on the simulated {self.device}, whose simulation has ended>"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.__self__.__name__ if func.__name__ == "__get__" else func.__name__
        if name in _READABLE:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        device = next((arg.device for arg in args if isinstance(arg, ExpiredTensor)), "device")
        raise SimulateError.of("simulate-ended", device=device, name=name, spec=way_back(device))


kinds_that_outlived_their_device.append(ExpiredTensor)


def way_back(device: object) -> str:
    """Return the `cuda:N` to simulate so that tensors of a device of an ended simulation can be used again."""
    index = getattr(device, "index", None) or 0
    return f"cuda:{max(_ended_with, index + 1)}"


@functools.cache
def _expired_class(kind: type) -> type:
    return type(kind)(kind.__name__, (ExpiredTensor, kind), {"__module__": kind.__module__})


def expire_all() -> None:
    """Change the class of every live tensor of a simulated device."""
    global _ended_with
    _ended_with = len(DEVICES.simulated)
    if not any(device.live for device in DEVICES.simulated):
        return
    with torch._C.DisableTorchFunctionSubclass():  # a subclass of the program's is not to see our questions
        live: list[torch.Tensor] = [tensor for tensor in tensors_alive() if _on_a_device(tensor)]
        for tensor in live:
            if ExpiredTensor in type(tensor).__mro__:
                continue
            if tensor.is_leaf and tensor.grad is not None:
                live.append(tensor.grad)  # which Python may not have seen before
            tensor.__class__ = _expired_class(type(tensor))
            _expired.append(weakref.ref(tensor))


def _on_a_device(tensor: torch.Tensor) -> bool:
    if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return False  # a wrapper: the tensors in it are found by themselves
    return tag_of(tensor).owner.device is not None


def any_expired() -> bool:
    return any(ref() is not None for ref in _expired)


def revive() -> None:
    """Give tensors whose device is there again their class back."""
    tensors = [tensor for tensor in (ref() for ref in _expired) if tensor is not None]
    _expired.clear()
    for tensor in tensors:
        if tensor.device in DEVICES.by_device:
            tensor.__class__ = type(tensor).__mro__[2]  # below its expired class and ExpiredTensor
        else:
            _expired.append(weakref.ref(tensor))
