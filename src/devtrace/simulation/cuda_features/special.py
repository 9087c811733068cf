"""Operators that are answered one by one: copies, pinned memory, and those whose CUDA kernel goes another way."""

from collections.abc import Callable
from typing import Any

import torch

from devtrace.runtime.torch_names import returning
from devtrace.simulation.devices import CPU, DEVICES
from devtrace.simulation.storage_tags import (
    FLOATING,
    HOST,
    TAG,
    anchor_floating,
    claim_all,
    mark_pinned,
    tag_of,
    type_name,
)

Args = tuple[Any, ...]


def pack_padded_sequence(mode: Any, func: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`_pack_padded_sequence`: batch sizes stay on the host, and the lengths must be there."""
    lengths = args[1]
    if tag_of(lengths).owner is not HOST and not DEVICES.are_one:
        type_of_lengths = type_name(lengths).rpartition(".")[2].removesuffix("Tensor")
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, "
            f"but got {lengths.dim()}D {tag_of(lengths).owner.device} {type_of_lengths} tensor"
        )
    data, sizes = func(*args, **kwargs)
    claim_all(data, tag_of(args[0]).owner)
    return data, sizes


def keeps_owner(mode: Any, func: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """Run a change in place that may give the tensor new storages (sparse, or `set_`), and tag those as its own."""
    owner = tag_of(args[0]).owner
    out = func(*args, **kwargs)
    claim_all(out, owner)
    return out


def set_(mode: Any, func: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """Refuse another device's storage. Only a host tensor may show what is in a device's memory, as DCP's do."""
    owner = tag_of(args[0]).owner
    source = args[1] if len(args) > 1 else args[0]
    other = (tag_of(source) if isinstance(source, torch.Tensor) else getattr(source, TAG)).owner
    if other is not owner and owner not in (HOST, FLOATING) and other is not FLOATING and not DEVICES.are_one:
        raise RuntimeError(
            f'Attempted to set the storage of a tensor on device "{owner.device or CPU}" to a storage on different '
            f'device "{other.device or CPU}".  This is no longer allowed; the devices must match.'
        )
    return keeps_owner(mode, func, args, kwargs)


def pinned(out: torch.Tensor) -> torch.Tensor:
    mark_pinned(out.untyped_storage())
    return out


def to_copy(mode: Any, func: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """`_to_copy`, which is below `.to(...)`: every copy between devices, and every change of dtype."""
    device = kwargs.get("device")
    owner = source = tag_of(args[0]).owner
    if device is not None:
        if device.type == "cuda":
            owner = DEVICES.find(device)
        elif device.type != "cpu" or device.index is not None:
            owner = HOST
        if device.type in ("cuda", "cpu"):
            kwargs = {**kwargs, "device": CPU}
    if kwargs.get("pin_memory"):
        kwargs = {**kwargs, "pin_memory": False}
    out = func(*args, **kwargs)
    if owner is not HOST:
        claim_all(out, owner)
        mode.last = owner
    elif source is not HOST and kwargs.get("non_blocking") and out.layout is torch.strided and not out.is_meta:
        return pinned(out)
    return out


def copy_(mode: Any, func: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """Answer `x.copy_(y)`, legal between any two devices; a floating target joins its source."""
    target, source = args[:2]
    if isinstance(source, torch.Tensor):  # C++ may hand on a number
        owner = tag_of(source).owner
        if owner is not FLOATING:
            anchor_floating(target, owner)
    return func(*args, **kwargs) if target.layout is torch.strided else keeps_owner(mode, func, args, kwargs)


def resize(mode: Any, func: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """Answer `x.resize_()`, which may take more memory."""
    if args[0].layout is not torch.strided:
        return keeps_owner(mode, func, args, kwargs)
    out = func(*args, **kwargs)
    tag_of(args[0]).resize(args[0].untyped_storage().nbytes())
    return out


def is_pinned(mode: Any, func: Any, args: Args, kwargs: dict[str, Any]) -> bool:
    return tag_of(args[0]).pinned


def pin_memory(mode: Any, func: Any, args: Args, kwargs: dict[str, Any]) -> torch.Tensor:
    """A copy in page-locked host memory; a tensor of a device has none."""
    if tag_of(args[0]).owner is not HOST and not DEVICES.are_one:
        raise RuntimeError(f"cannot pin '{type_name(args[0])}' only dense CPU tensors can be pinned")
    return pinned(args[0].clone())


def narrow_copy(mode: Any, func: Any, args: Args, kwargs: dict[str, Any]) -> Any:
    """CUDA copies a view, whose checks have other words than those of the CPU's kernel."""
    if tag_of(args[0]).owner is HOST or "out" in kwargs:
        return func(*args, **kwargs)
    with mode:
        return torch.narrow(*args).clone(memory_format=torch.contiguous_format)


BY_NAME: dict[str, Callable[..., Any]] = {
    "aten::_to_copy": to_copy,
    "aten::copy_": copy_,
    "aten::set_": set_,
    "aten::narrow_copy": narrow_copy,
    **dict.fromkeys(("aten::resize_", "aten::resize_as_"), resize),
    "aten::is_pinned": is_pinned,
    "aten::_pin_memory": pin_memory,
    "aten::_pack_padded_sequence": pack_padded_sequence,
    "aten::_cufft_get_plan_cache_size": returning(0),  # of cuFFT's plans: there is no such memory here
    "aten::_cufft_get_plan_cache_max_size": returning(4096),
    "aten::_cufft_set_plan_cache_max_size": returning(None),
    "aten::_cufft_clear_plan_cache": returning(None),
}
