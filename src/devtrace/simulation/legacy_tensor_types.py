"""Older ways to name a device: `x.type("torch.cuda.FloatTensor")`, `x.new(...)`, and the assignment of a gradient."""

import warnings
from collections.abc import Callable
from typing import Any, Final

import torch
from torch.overrides import has_torch_function

from devtrace.runtime.eager_paths import ask_no_class
from devtrace.runtime.patches import Call, Patches
from devtrace.runtime.quiet import PLAIN
from devtrace.runtime.torch_names import returning
from devtrace.simulation.devices import CPU, DEVICES, SimulatedDevice
from devtrace.simulation.stand_ins import stand_in
from devtrace.simulation.storage_tags import HOST, anchor_floating, claim_all, tag_of, type_name
from devtrace.simulation.tensors import Attribute, device, move, read_to

_Base = torch._C.TensorBase
_grad: Any = _Base.grad
_KINDS: Final = ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool")
"""Of sparse tensors all but the last."""
_NO_LONGER: Final = (
    "The torch.cuda.*DtypeTensor constructors are no longer recommended. It's best to use methods such as "
    "torch.tensor(data, dtype=*, device='cuda') to create tensors."
)
_host = returning(HOST)
_warned: list[bool] = []  # once in a process, as torch has it
_default: list[Callable[[], SimulatedDevice]] = [_host]  # of `torch.Tensor(3)`


def install(patches: Patches) -> None:
    """Put the methods below on `torch.Tensor`, and replace the legacy types."""
    _default[:] = [_host]
    for host, cuda, kinds in ((torch, torch.cuda, _KINDS), (torch.sparse, torch.cuda.sparse, _KINDS[:-1])):
        for kind in (f"{kind}Tensor" for kind in kinds):
            torch_type = getattr(host, kind)
            for owner, find in ((host, _host), (cuda, DEVICES.find)):
                patches.set(owner, kind, legacy_type(torch_type, f"{owner.__name__}.{kind}", find))
    for name, value in _REPLACED.items():
        patches.set(torch.Tensor, name, value)
    for name in ("apply_", "map_", "map2_"):
        patches.wrap(torch.Tensor, name, _refuse_on_device)
    patches.wrap(torch.Tensor, "new", _new)
    patches.wrap(torch.Tensor, "new_tensor", new_tensor, leaves=True)
    patches.wrap(torch._C, "_set_default_tensor_type", _set_default)
    patches.wrap(torch._C._nn, "_parse_to", _parse_to)


def legacy_type(torch_type: Any, name: str, find_device: Callable[[], SimulatedDevice]) -> type:
    """Make `torch.FloatTensor` or `torch.cuda.FloatTensor`: call it for a tensor, or use it in isinstance."""
    is_cuda = "cuda" in name

    def make(*args: Any, device: Any = None, **kwargs: Any) -> torch.Tensor:
        if is_cuda and (not _warned or torch.is_warn_always_enabled()):
            _warned.append(True)
            warnings.warn(_NO_LONGER, stacklevel=3)
        tensor = ask_no_class(0, torch_type, *args, **kwargs)
        is_of_parts = tensor.layout is torch.sparse_coo and any(isinstance(arg, torch.Tensor) for arg in args)
        return tensor if is_of_parts else _claim_new(tensor, _constructor_device(device, find_device()))

    def is_one(value: object) -> bool:
        return isinstance(value, torch.Tensor) and type_name(value) == name

    return stand_in(torch_type, make, is_one, name, dtype=torch_type.dtype, is_cuda=is_cuda)


def _claim_new(tensor: torch.Tensor, owner: SimulatedDevice) -> torch.Tensor:
    """Tag what a legacy constructor made in C++, where no mode saw it."""
    anchor_floating(tensor, owner)
    claim_all(tensor, owner)
    return tensor


def _constructor_device(device: Any, default: SimulatedDevice) -> SimulatedDevice:
    """Return the device that a legacy constructor is asked for; raise where it cannot make tensors there."""
    target = None if device is None else DEVICES.resolve(device)
    kind = "cpu" if default.device is None else "cuda"
    if target is not None and target.type != kind and not DEVICES.are_one:
        words = f"legacy constructor expects device type: {kind} but device type: {target.type} was passed"
        raise RuntimeError(words)
    return default if target is None or target.type == "cpu" else DEVICES.find(target)


def _type(self: torch.Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    if dtype is None:
        return type_name(self)
    if isinstance(dtype, torch.dtype):
        return self.to(dtype, non_blocking=non_blocking)
    name = dtype if isinstance(dtype, str) else f"{dtype.__module__}.{dtype.__name__}"
    target = DEVICES.resolve("cuda") if name.startswith("torch.cuda.") else CPU
    target = device(self) if device(self).type == target.type else target
    plain = _Base.type(torch.empty(0, device=CPU), name.replace("torch.cuda.", "torch."))
    return move(self, target, {"dtype": plain.dtype, "non_blocking": non_blocking})


def _new(original: Call, like: torch.Tensor, *args: Any, device: Any = None, **kwargs: Any) -> torch.Tensor:
    return _claim_new(original(like, *args, **kwargs), _constructor_device(device, tag_of(like).owner))


def _set_default(set_dtype: Call, kind: Any) -> None:
    """`set_default_tensor_type`, of which C++ knows the dtype alone."""
    set_dtype(getattr(kind, "own", kind))
    before, is_cuda = _default[0], getattr(kind, "is_cuda", False)
    _default[0] = DEVICES.find if is_cuda else _host
    if _default[0] != before:  # else a program's own default device stays
        torch.set_default_device("cuda" if is_cuda else None)


def _init_of_default_type(self: torch.Tensor, *_: Any, **__: Any) -> None:
    """Tag `torch.Tensor(3)`, which is of the default type, as only its constructor can know."""
    _claim_new(self, _default[0]())


def _parse_to(parse: Call, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    """`nn.Module.to`'s reading of its arguments, which takes another tensor for the CPU's."""
    target = read_to(args, kwargs)[0]
    if isinstance(target, int):  # for which C++ asks an accelerator
        args, kwargs = (CPU, *args[1:])[: len(args)], kwargs | ({} if args else {"device": CPU})
    _, *options = parse(*args, **kwargs)
    return None if target is None else DEVICES.resolve(target), *options


def _refuse_on_device(original: Call, tensor: torch.Tensor, *args: Any) -> Any:
    """Refuse `x.apply_(f)` of a device: torch runs Python for each element on the CPU alone."""
    is_on_device = type(tensor) in PLAIN and device(tensor).type == "cuda" and not DEVICES.are_one
    if is_on_device and not tensor.requires_grad:  # of which torch speaks first
        raise TypeError(f"{original.__name__} is only implemented on CPU tensors")
    return original(tensor, *args)


def new_tensor(original: Call, self: torch.Tensor, data: Any, **kwargs: Any) -> Any:
    """`x.new_tensor(data)`: of the dtype and on the device of `x`, unless given others."""
    if has_torch_function((self,)):
        return original(self, data, **kwargs)
    options: dict[str, Any] = {"dtype": self.dtype, "device": device(self)}
    return torch.tensor(data, **options | {name: value for name, value in kwargs.items() if value is not None})


def set_grad(self: torch.Tensor, grad: torch.Tensor | None) -> None:
    """`x.grad = g`, which torch takes from the tensor's own device only."""
    if isinstance(grad, torch.Tensor) and device(grad) != device(self) and not DEVICES.are_one:
        raise RuntimeError(_gradient_refusal(device(grad), device(self)))
    _grad.__set__(self, grad)


def _gradient_refusal(actual: torch.device, expected: torch.device) -> str:
    """Return this torch's words for a gradient on another device: made with `meta`, then given the devices."""
    with torch._C._DisableTorchDispatch():
        target, foreign = torch.empty(0, device=CPU), torch.empty(0, device="meta")
    try:
        _grad.__set__(target, foreign)
    except RuntimeError as error:
        words = str(error)
    if "'meta'" not in words:
        return words
    if actual.type != expected.type:
        return words.replace("'cpu'", f"'{expected.type}'").replace("'meta'", f"'{actual.type}'")
    return (
        f"attempting to assign a gradient located on device with index '{actual.index}' "
        f"to a tensor located on device with index '{expected.index}'{words[words.index('. ') :]}"
    )


_REPLACED: Final[dict[str, Any]] = {
    "type": _type,
    "__init__": _init_of_default_type,
    "grad": Attribute(_grad.__get__, set_grad, _grad.__delete__),
    "record_stream": returning(None),  # memory is not handed out by stream here
}
