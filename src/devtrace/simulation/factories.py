"""`device=` of the functions that make tensors: numbers, strings and devices without an index become what they mean.

torch's C++ asks its own accelerator what `device=0` means and which index `cuda` has, and there is none. The functions
themselves need no help: they reach the dispatch mode with the device as asked.
"""

from typing import Any

import torch
from torch.utils._device import DeviceContext, _device_constructors

from devtrace.runtime.patches import Call, Patches
from devtrace.simulation.cuda_features.special import pinned
from devtrace.simulation.devices import CPU, DEVICES, TO_HOST
from devtrace.simulation.stand_ins import stand_in
from devtrace.simulation.storage_tags import HOST, claim_all, tag_of
from devtrace.simulation.tensors import a_mode_sees, device, move

_Device = torch.device


def install(patches: Patches) -> None:
    """Wrap every constructor that `with torch.device(...)` knows, and those that make a tensor like another."""
    constructors = _device_constructors()  # cached by torch: asked before any of them is wrapped
    for owner in (torch, torch.fft):
        for name, function in list(vars(owner).items()):
            is_known = type(function).__hash__ is not None and function in constructors
            if callable(function) and (is_known or name.endswith("_like") or name in ("normal", "from_file")):
                call = _make_by_values if name.startswith("sparse_") else _OF_DATA.get(name, _make)
                patches.wrap(owner, name, call, leaves=call is _make)
    for name in ("new_empty", "new_empty_strided", "new_full", "new_ones", "new_zeros"):
        patches.wrap(torch.Tensor, name, _make, leaves=True)
    for name in ("nested_tensor", "as_nested_tensor"):
        patches.wrap(torch.nested, name, _make_of_parts)
    patches.wrap(DeviceContext, "__torch_function__", _give_device)
    patches.set(torch, "device", stand_in(_Device, _make_device))


def _make_device(*args: Any, **kwargs: Any) -> torch.device:
    """`torch.device`, for which a number is a CUDA device; everything else about it is torch's own."""
    if len(args) == 1 and not kwargs and isinstance(args[0], int):
        return _Device("cuda", args[0])
    return _Device(*args, **kwargs)


def _make(function: Call, *args: Any, **kwargs: Any) -> Any:
    if kwargs.get("device") is not None:
        kwargs["device"] = target = DEVICES.resolve(kwargs["device"])
        if kwargs.get("out") is not None:
            return function(*args, **_without_device(kwargs, target))
        if target.type == "cuda" and not a_mode_sees():
            tensor = function(*args, **{**kwargs, "device": CPU})
            claim_all(tensor, DEVICES.by_device[target])
            return tensor
    return function(*args, **kwargs)


def _without_device(kwargs: dict[str, Any], target: torch.device) -> dict[str, Any]:
    """Return the keywords without `device`, as `out` has one; raise as C++ does where `out` is elsewhere."""
    out_type = device(kwargs["out"]).type
    if out_type != target.type and not DEVICES.are_one:
        raise RuntimeError(f"device type {target.type} does not match device type of out parameter ({out_type})")
    return {name: value for name, value in kwargs.items() if name != "device"}


def _make_of_parts(function: Call, *args: Any, **kwargs: Any) -> Any:
    """Make a sparse or nested tensor where its parts are, then move it: C++ would look for the device first."""
    target = kwargs.pop("device", None)
    if target is None:
        return function(*args, **kwargs)
    requires_grad = kwargs.pop("requires_grad", False)
    tensor = move(function(*args, **kwargs), DEVICES.resolve(target), {})
    return tensor.requires_grad_() if requires_grad else tensor


def _make_by_values(function: Call, *args: Any, **kwargs: Any) -> Any:
    """Place indices at the values: those of a COO tensor without `device=` are made there, any others are moved."""
    is_coo = function.__name__ == "sparse_coo_tensor"
    index_count = 1 if is_coo else 2  # arguments before the values
    values = kwargs["values"] if "values" in kwargs else args[index_count] if index_count < len(args) else None
    if isinstance(values, torch.Tensor):
        target = device(values)
        place = _make_indices if is_coo and kwargs.get("device") is None else _move_indices
        args = (*(place(arg, target) for arg in args[:index_count]), *args[index_count:])
        kwargs = {name: place(arg, target) if name.endswith("indices") else arg for name, arg in kwargs.items()}
    return _make_of_parts(function, *args, **kwargs)


def _make_indices(value: Any, target: torch.device) -> Any:
    return value if isinstance(value, torch.Tensor) else torch.tensor(value, device=target)


def _move_indices(value: Any, target: torch.device) -> Any:
    return move(value, target, {}) if isinstance(value, torch.Tensor) else value


def _copy(function: Call, data: Any, **kwargs: Any) -> Any:
    """`torch.tensor`: a tensor given as data keeps its device, which C++ does not know."""
    if isinstance(data, torch.Tensor):
        target = DEVICES.resolve(device(data) if kwargs.get("device") is None else kwargs["device"])
        kwargs["device"] = TO_HOST if target.type == "cpu" else target
        return function(data, **kwargs)
    is_pinned = kwargs.pop("pin_memory", False)  # for a device, only what is copied there is pinned
    tensor = _make(function, data, **kwargs)
    return pinned(tensor) if is_pinned and device(tensor).type == "cpu" else tensor


def _keep(function: Call, data: Any, *args: Any, **kwargs: Any) -> Any:
    """`torch.as_tensor` and `asarray`: a tensor of that device and dtype is returned itself."""
    data = torch._C._from_dlpack(data) if type(data).__name__ == "PyCapsule" else data
    if not isinstance(data, torch.Tensor) or tag_of(data).owner is HOST:
        return _make(function, data, *args, **kwargs)
    target = device(data) if kwargs.get("device") is None else DEVICES.resolve(kwargs["device"])
    rest = {"dtype": kwargs.get("dtype", args[0] if args else None), "copy": kwargs.get("copy")}
    if rest["copy"] is False:
        _check_alias(data, target, rest["dtype"])
    tensor, requires_grad = move(data, target, rest), kwargs.get("requires_grad", False)
    if function.__name__ != "asarray":
        return tensor
    return tensor.requires_grad_(requires_grad) if requires_grad or tensor.is_leaf else tensor.detach()


def _check_alias(data: torch.Tensor, target: torch.device, dtype: torch.dtype | None) -> None:
    """Refuse `copy=False` where the tensor would have to be copied to another device or dtype."""
    if target != device(data) and not DEVICES.are_one:
        raise ValueError(f"can't alias tensor from device '{device(data)}' to '{target}'.")
    if dtype not in (None, data.dtype):
        names = (torch._C.TensorBase.type(torch.empty(0, dtype=kind, device=CPU))[6:-6] for kind in (data.dtype, dtype))
        raise ValueError("can't alias tensor with dtype '{}' into dtype '{}'.".format(*names))


_OF_DATA: dict[str, Call] = {"tensor": _copy, "as_tensor": _keep, "asarray": _keep}


def _give_device(call: Call, context: DeviceContext, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """`with torch.device("cuda")`: the device with its index, for a function that is given none."""
    kwargs = kwargs or {}
    if func in _device_constructors() and kwargs.get("device") is None:
        kwargs = {**kwargs, "device": DEVICES.resolve(context.device)}
        if kwargs.get("out") is not None:
            return func(*args, **_without_device(kwargs, kwargs["device"]))
    return call(context, func, types, args, kwargs)
