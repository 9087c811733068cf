"""Patches of `torch.Tensor` that name its device or move it: `.device`, `.to` and their kin in a simulation.

They are on the class, so they work in every thread, and calls that ask for no device cost what they always did.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch
from torch import nn
from torch.overrides import handle_torch_function, has_torch_function

from devtrace.runtime.patches import Call, Patches
from devtrace.runtime.quiet import PLAIN, Quiet, function_modes
from devtrace.simulation.devices import CPU, DEVICES, TO_HOST
from devtrace.simulation.storage_tags import Tag, claim, tag_of

_Base = torch._C.TensorBase
_base_device = _Base.device.__get__
_base_to = _Base.to
_is_excluded: Callable[[Any], bool] = torch._C._dispatch_tls_is_dispatch_key_excluded

Gradients = tuple[torch.Tensor | None, ...]


class Attribute(property):
    """Answers for an attribute of tensors instead of torch's own descriptor."""

    # torch 2.11 asks every descriptor of torch.Tensor for it when torch._dynamo is imported.
    __objclass__ = torch.Tensor


def device(self: torch.Tensor) -> torch.device:
    """`Tensor.device`: the simulated device, or torch's own answer."""
    if type(self) in PLAIN and not function_modes():
        return _device(self)
    with Quiet():
        return _device(self)


def _device(self: torch.Tensor) -> torch.device:
    try:
        tag: Tag = self.untyped_storage()._devtrace_tag  # type: ignore[attr-defined]
    except (RuntimeError, ValueError):  # without one storage of its own
        tag = tag_of(self)
    simulated = (tag.hint or tag.owner).device
    if simulated is not None:
        return simulated
    torchs_answer: torch.device = _base_device(self)
    return _device_within(self) or torchs_answer if type(self) not in PLAIN else torchs_answer


def _device_within(tensor: torch.Tensor) -> torch.device | None:
    """Return the device of what is in a wrapper: C++ makes some (DTensor) without us, and takes them for the CPU's."""
    if type(tensor).__torch_dispatch__ is torch._C._disabled_torch_dispatch_impl:
        return None  # it wraps nothing
    attributes = tensor.__tensor_flatten__()[0] if hasattr(tensor, "__tensor_flatten__") else ()
    return next((device(getattr(tensor, name)) for name in attributes), None)


def _shown_to_overrides(name: str, get: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], Any]:
    """Return a getter whose reads the program's own modes and subclasses see, as they see torch's own."""

    def read(self: torch.Tensor) -> Any:
        if (type(self) not in PLAIN or function_modes()) and has_torch_function((self,)):
            return handle_torch_function(getattr(torch.Tensor, name).__get__, (self,), self)
        return get(self)

    return read


def install(patches: Patches) -> None:
    """Replace everything on `torch.Tensor` that names a device."""
    for name, get in _ATTRIBUTES.items():
        patches.set(torch.Tensor, name, Attribute(_shown_to_overrides(name, get)))
    for method in (to, cuda, cpu, type_as, numpy, tolist, get_device):
        patches.wrap(torch.Tensor, method.__name__, partial(ask_classes, method), leaves=True)
    lazy: Any = nn.parameter.UninitializedParameter.__mro__[1]  # lists by function what a lazy parameter can do
    methods = [getattr(torch.Tensor, name) for name in ("to", "cuda", "cpu", "get_device")]
    patches.set(lazy, "_allowed_methods", [*lazy._allowed_methods, *methods])


def ask_classes(replacement: Call, method: Call, *args: Any, **kwargs: Any) -> Any:
    """Let modes and subclasses of the program's answer first, as they do for torch's own method."""
    values = (*args, *kwargs.values())
    if has_torch_function(values):
        return handle_torch_function(getattr(torch.Tensor, method.__name__), values, *args, **kwargs)
    return replacement(*args, **kwargs)


_ATTRIBUTES: Final[dict[str, Callable[[torch.Tensor], Any]]] = {
    "device": device,
    "is_cuda": lambda self: device(self).type == "cuda",
    "is_cpu": lambda self: device(self).type == "cpu",
}


def to(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
    target, options = read_to(args, kwargs)
    if target is None:
        return _base_to(tensor, *args, **kwargs)
    return move(tensor, DEVICES.resolve(target), options)


def cuda(
    tensor: torch.Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None
) -> torch.Tensor:
    options = {"non_blocking": non_blocking, "memory_format": memory_format}
    target = DEVICES.resolve("cuda" if device is None else device)
    if target.type != "cuda" and not DEVICES.are_one:
        raise RuntimeError("Invalid device, must be cuda device")
    return move(tensor, target, options)


def cpu(tensor: torch.Tensor, memory_format: Any = None) -> torch.Tensor:
    return move(tensor, CPU, {"memory_format": memory_format})


def type_as(tensor: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return move(tensor, device(other), {"dtype": other.dtype})


def get_device(tensor: torch.Tensor) -> int:
    here = device(tensor)
    return here.index if here.type == "cuda" else _Base.get_device(tensor)


def tolist(tensor: torch.Tensor) -> Any:
    return _Base.tolist(cpu(tensor))


def numpy(tensor: torch.Tensor, *, force: bool = False) -> Any:
    if force:
        return cpu(tensor.detach()).resolve_conj().resolve_neg().numpy()
    here = device(tensor)
    if here.type == "cuda" and not DEVICES.are_one:
        raise TypeError(
            f"can't convert {here} device type tensor to numpy. "
            "Use Tensor.cpu() to copy the tensor to host memory first."
        )
    return _Base.numpy(tensor)


def read_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the device that `.to(...)` names, or None, and the other arguments by keyword."""
    first = args[0] if args else None
    first_name = "other" if isinstance(first, torch.Tensor) else "dtype" if isinstance(first, torch.dtype) else "device"
    other_names = ("dtype", "non_blocking", "copy") if first_name == "device" else ("non_blocking", "copy")
    options = kwargs | dict(zip((first_name, *other_names), args, strict=False))
    other = options.pop("other", None)
    if other is not None:
        options |= {"device": device(other), "dtype": other.dtype}
    return options.pop("device", None), options


def move(tensor: torch.Tensor, target: torch.device, options: dict[str, Any]) -> torch.Tensor:
    """`.to(target)`: nothing if the tensor is there, a change of dtype, or a copy that autograd undoes in backward."""
    options = {name: value for name, value in options.items() if value is not None}
    here = device(tensor)
    if target.type not in ("cuda", "cpu"):
        return _base_to(tensor, target, **options)
    if here.type == target.type and here.index == target.index:
        return _base_to(tensor, options.pop("dtype", tensor.dtype), **options)
    out = _copy_to(tensor, target, options | {"copy": True})
    if out.grad_fn is not None:
        out.grad_fn.register_hook(partial(_move_back, here))
    return out


def _copy_to(tensor: torch.Tensor, target: torch.device, options: dict[str, Any]) -> torch.Tensor:
    if _base_device(tensor).type == "cuda":
        return _base_to(tensor, target, **options)  # a fake tensor, which C++ knows to be there
    if a_mode_sees():  # and tags the copy
        return _base_to(tensor, target if target.type == "cuda" else TO_HOST, **options)
    out = _base_to(tensor, options.pop("dtype", tensor.dtype), **options)
    if target in DEVICES.by_device:
        claim(out, DEVICES.by_device[target])
    return out


def a_mode_sees() -> bool:
    """Return False where modes are switched off (printing, a fake tensor), or a thread is older than the simulation."""
    return torch._C._len_torch_dispatch_stack() > 0 and not _is_excluded(torch._C.DispatchKey.Python)


def _move_back(home: torch.device, grads: Gradients, _: Any) -> Gradients:
    """Move a copy's gradients back: C++ takes both ends for the CPU, so its own backward copies nothing."""
    return tuple(grad if grad is None else move(grad, home, {}) for grad in grads)
