"""`device=` of the functions that make tensors: numbers, strings and devices without an index become what they mean.

torch's C++ asks its own accelerator what `device=0` means and which index `cuda` has, and there is none. The functions
themselves need no help: they reach the dispatch mode with the device as asked.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch.utils._device import DeviceContext, _device_constructors

from devtrace.runtime.patches import Patches
from devtrace.runtime.tracebacks import leave
from devtrace.simulation.cuda_features.special import pinned
from devtrace.simulation.handlers import TO_HOST
from devtrace.simulation.storage_tags import CPU, HOST, MEMORY, SIMULATED, claim_all, tag_of
from devtrace.simulation.tensors import Resolve, a_mode_sees, device, move


def install(patches: Patches, resolve: Resolve) -> None:
    """Wrap every constructor that `with torch.device(...)` knows, and those that make a tensor like another."""
    constructors = _device_constructors()  # cached by torch: asked before any of them is wrapped
    for owner in (torch, torch.fft):
        for name, function in list(vars(owner).items()):
            makes_another = name.endswith("_like") or name in ("normal", "from_file")
            if (
                callable(function)
                and type(function).__hash__ is not None
                and (function in constructors or makes_another)
            ):
                wrap = _after_its_values if name.startswith("sparse_") else _OF_DATA.get(name, _makes)
                patches.set(owner, name, wrap(function, resolve))
    for name in ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros"):
        patches.set(torch.Tensor, name, _makes(getattr(torch._C.TensorBase, name), resolve))
    for name in ("nested_tensor", "as_nested_tensor"):
        patches.set(torch.nested, name, _makes_of_parts(getattr(torch.nested, name), resolve))
    patches.set(DeviceContext, "__torch_function__", _with_index(resolve))
    patches.set(torch, "device", _device_type(resolve))


def _device_type(resolve: Resolve) -> type:
    """`torch.device`, for which a number is a CUDA device; everything else about it is torch's own."""
    own = torch.device

    class DeviceType(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> torch.device:
            if len(args) == 1 and not kwargs and isinstance(args[0], int):
                return own("cuda", args[0])
            return own(*args, **kwargs)

        def __instancecheck__(cls, value: object) -> bool:
            return isinstance(value, own)

        def __eq__(cls, other: object) -> bool:
            return other is cls or other is own

        def __hash__(cls) -> int:
            return hash(own)

    return DeviceType("device", (), {"__module__": "torch", "__doc__": own.__doc__})


def _makes(function: Callable[..., Any], resolve: Resolve) -> Callable[..., Any]:
    @functools.wraps(function)
    def make(*args: Any, **kwargs: Any) -> Any:
        try:
            if kwargs.get("device") is not None:
                kwargs["device"] = target = resolve(kwargs["device"])
                if kwargs.get("out") is not None:
                    return function(*args, **_made_there(kwargs, target))
                if target.type == "cuda" and not a_mode_sees():
                    made = function(*args, **{**kwargs, "device": CPU})
                    claim_all(made, SIMULATED[target])
                    return made
            return function(*args, **kwargs)
        except BaseException as error:
            leave(error)
            raise

    return make


def _made_there(kwargs: dict[str, Any], target: torch.device) -> dict[str, Any]:
    """Leave the device out where a tensor is given to write into; raise as C++ does where that is another's."""
    there = device(kwargs["out"]).type
    if there != target.type and not MEMORY.is_one:
        raise RuntimeError(f"device type {target.type} does not match device type of out parameter ({there})")
    return {name: value for name, value in kwargs.items() if name != "device"}


def _makes_of_parts(function: Callable[..., Any], resolve: Resolve) -> Callable[..., Any]:
    """Sparse and nested constructors look for the device in C++ first: made where the parts are, and moved."""

    @functools.wraps(function)
    def make(*args: Any, **kwargs: Any) -> Any:
        target = kwargs.pop("device", None)
        if target is None:
            return function(*args, **kwargs)
        wanted = kwargs.pop("requires_grad", False)
        made = move(function(*args, **kwargs), resolve(target), {})
        return made.requires_grad_() if wanted else made

    return make


def _after_its_values(made: Callable[..., Any], resolve: Resolve) -> Callable[..., Any]:
    """Indices that are no tensors are made where the values are; those of a compressed tensor follow them."""
    make = _makes_of_parts(made, resolve)
    moves_none = made.__name__ == "sparse_coo_tensor"
    number = 1 if moves_none else 2

    @functools.wraps(made)
    def follow(*args: Any, **kwargs: Any) -> Any:
        values = kwargs["values"] if "values" in kwargs else args[number] if number < len(args) else None
        if isinstance(values, torch.Tensor):
            target = device(values)
            there = _made_at if moves_none and kwargs.get("device") is None else _moved
            args = (*(there(arg, target) for arg in args[:number]), *args[number:])
            kwargs = {name: there(arg, target) if name.endswith("indices") else arg for name, arg in kwargs.items()}
        return make(*args, **kwargs)

    return follow


def _made_at(value: Any, target: torch.device) -> Any:
    return value if isinstance(value, torch.Tensor) else torch.tensor(value, device=target)


def _moved(value: Any, target: torch.device) -> Any:
    return move(value, target, {}) if isinstance(value, torch.Tensor) else value


def _copies(function: Callable[..., Any], resolve: Resolve) -> Callable[..., Any]:
    """`torch.tensor`: a tensor given as data keeps its device, which C++ does not know."""
    make = _makes(function, resolve)

    @functools.wraps(function)
    def copy(data: Any, **kwargs: Any) -> Any:
        if isinstance(data, torch.Tensor):
            target = resolve(device(data) if kwargs.get("device") is None else kwargs["device"])
            kwargs["device"] = TO_HOST if target.type == "cpu" else target
            return function(data, **kwargs)
        is_pinned = kwargs.pop("pin_memory", False)  # what numbers are made of for a device is pinned on the way there
        made = make(data, **kwargs)
        return pinned(made) if is_pinned and device(made).type == "cpu" else made

    return copy


def _keeps(function: Callable[..., Any], resolve: Resolve) -> Callable[..., Any]:
    """`torch.as_tensor` and `asarray`: a tensor that fits is given back."""
    make = _makes(function, resolve)

    @functools.wraps(function)
    def keep(data: Any, *args: Any, **kwargs: Any) -> Any:
        data = torch._C._from_dlpack(data) if type(data).__name__ == "PyCapsule" else data
        if isinstance(data, torch.Tensor) and tag_of(data).owner is not HOST:
            target = device(data) if kwargs.get("device") is None else resolve(kwargs["device"])
            rest = {"dtype": kwargs.get("dtype", args[0] if args else None), "copy": kwargs.get("copy")}
            if rest["copy"] is False:
                _check_alias(data, target, rest["dtype"])
            kept, wanted = move(data, target, rest), kwargs.get("requires_grad", False)
            if function.__name__ != "asarray":
                return kept
            return kept.requires_grad_(wanted) if wanted or kept.is_leaf else kept.detach()
        return make(data, *args, **kwargs)

    return keep


def _check_alias(data: torch.Tensor, target: torch.device, dtype: torch.dtype | None) -> None:
    """Refuse what would be another tensor where a program asks for the same."""
    if target != device(data) and not MEMORY.is_one:
        raise ValueError(f"can't alias tensor from device '{device(data)}' to '{target}'.")
    if dtype not in (None, data.dtype):
        names = (torch._C.TensorBase.type(torch.empty(0, dtype=each, device=CPU))[6:-6] for each in (data.dtype, dtype))
        raise ValueError("can't alias tensor with dtype '{}' into dtype '{}'.".format(*names))


_OF_DATA = {"tensor": _copies, "as_tensor": _keeps, "asarray": _keeps}


def _with_index(resolve: Resolve) -> Callable[..., Any]:
    original = DeviceContext.__torch_function__

    def torch_function(self: DeviceContext, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _device_constructors() and kwargs.get("device") is None:
            kwargs = {**kwargs, "device": resolve(self.device)}
            if kwargs.get("out") is not None:
                return func(*args, **_made_there(kwargs, kwargs["device"]))
        return original(self, func, types, args, kwargs)  # type: ignore[no-untyped-call]

    return torch_function
