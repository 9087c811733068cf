"""The C++ below `torch.nn.parallel.comm`, which only CUDA builds have: the copies of DataParallel.

The checks and their words are those of torch/csrc/cuda/comm.cpp.
"""

from collections.abc import Sequence
from typing import Any

import torch

from devtrace.runtime.patches import Patches
from devtrace.simulation.devices import DEVICES

Tensor = torch.Tensor


def install(patches: Patches) -> None:
    """DataParallel's own Python does the rest; its background streams are made anew, and forgotten afterwards."""
    from torch.nn.parallel import _functions

    for function in (broadcast, broadcast_out, broadcast_coalesced, scatter, scatter_out, gather, gather_out):
        patches.set(torch._C, f"_{function.__name__}", function)
    patches.set(_functions, "_streams", None)


def broadcast(tensor: Tensor, devices: list[int]) -> list[Tensor]:
    """Return the tensor itself for its own device, a copy for every other."""
    return [tensor.to(_cuda(index), non_blocking=True) for index in devices]


def broadcast_out(tensor: Tensor, out: list[Tensor]) -> list[Tensor]:
    _check_cuda(out, "output", "output tensor")
    for number, target in enumerate(out):
        shape = f"{_sizes(tensor)}, but output tensor at index {number} has shape {_sizes(target)}"
        _check(
            target.shape == tensor.shape, f"Expected all output tensors to have same shape as the source tensor {shape}"
        )
    return [target.copy_(tensor, non_blocking=True) for target in out]


def broadcast_coalesced(tensors: list[Tensor], devices: list[int], buffer_size: int) -> list[list[Tensor]]:
    """One list of tensors per device; the first device's are the tensors themselves."""
    here = all(tensor.get_device() == devices[0] for tensor in tensors)
    _check(here or DEVICES.are_one, f"All tensors must be on devices[0]: {devices[0]}")
    copies = [[broadcast(tensor, [index])[0].detach() for tensor in tensors] for index in devices[1:]]
    return [tensors, *copies]


def scatter(tensor: Tensor, devices: list[int], sizes: Any, dim: int, streams: Any) -> list[Tensor]:
    _check(bool(devices), "Expected at least one device to scatter to")
    lengths = f"len(devices) = {len(devices)} and len(chunk_sizes) = {len(sizes or ())}"
    same = sizes is None or len(sizes) == len(devices)
    _check(same, f"Expected devices and chunk_sizes to be of same length, but got {lengths}")
    chunks = tensor.split(list(sizes), dim) if sizes is not None else tensor.chunk(len(devices), dim)
    for number, (stream, index) in enumerate(zip(streams or (), devices, strict=False)):
        there = index if stream is None else stream.device_index
        words = f"Expected the device associated with the stream at index {number} (was {there}) "
        _check(there == index, f"{words}to match the device supplied at that index (expected {index})")
    return [chunk.to(_cuda(index), non_blocking=True) for chunk, index in zip(chunks, devices, strict=False)]


def scatter_out(tensor: Tensor, out: list[Tensor], dim: int, streams: Any) -> list[Tensor]:
    _check(bool(out), "Expected at least one output tensor to scatter to")
    _check_cuda(out, "output", "output tensor")
    dim %= tensor.dim()
    for number, target in enumerate(out):
        words = f"Output tensor at index {number} has incorrect shape: {_sizes(target)}. Expected same shape except for"
        _check(
            _apart_from(target, dim) == _apart_from(tensor, dim),
            f"{words} scatter dim {dim} as the source tensor: {_sizes(tensor)}",
        )
    total = sum(target.size(dim) for target in out)
    words = f"Total size for output tensors along scatter dim {dim} does not match the source tensor size at dim {dim}"
    _check(total == tensor.size(dim), f"{words}. Expected {tensor.size(dim)}, but got total size {total}")
    chunks = tensor.split([target.size(dim) for target in out], dim)
    return [target.copy_(chunk) for target, chunk in zip(out, chunks, strict=True)]


def gather(tensors: list[Tensor], dim: int, destination: int | None) -> Tensor:
    """On the destination, or on the host for -1; the others are laid out as the first."""
    shape = _gathered(tensors, dim)
    device = torch.device("cpu") if destination == -1 else _cuda(destination or 0)
    layout = torch._prims_common.suggest_memory_format(tensors[0])
    return gather_out(tensors, torch.empty(shape, dtype=tensors[0].dtype, device=device, memory_format=layout), dim)


def gather_out(tensors: list[Tensor], out: Tensor, dim: int) -> Tensor:
    shape = _gathered(tensors, dim)
    _check(list(out.shape) == shape, f"Expected out tensor to have shape {shape}, but got {_sizes(out)}")
    for target, tensor in zip(out.split([tensor.size(dim) for tensor in tensors], dim), tensors, strict=True):
        target.copy_(tensor, non_blocking=True)
    return out


def _gathered(tensors: list[Tensor], dim: int) -> list[int]:
    """Return the shape of what is gathered of tensors that fit each other."""
    _check(bool(tensors), "Expected at least one tensor to gather from")
    _check_cuda(tensors, "input", "tensor")
    shape = list(tensors[0].shape)
    for number, tensor in enumerate(tensors):
        words = "Expected all input tensors to have the same number of dimensions, but tensor at index "
        _check(tensor.dim() == len(shape), f"{words}{number}has {tensor.dim()} dimensions, (expected {len(shape)})")
        expected = [*shape[: dim % len(shape)], tensor.size(dim), *shape[dim % len(shape) + 1 :]]
        words = f"Input tensor at index {number} has invalid shape {_sizes(tensor)}, but expected {expected}"
        _check(list(tensor.shape) == expected, words)
    shape[dim] = sum(tensor.size(dim) for tensor in tensors)
    return shape


def _check_cuda(tensors: Sequence[Tensor], kind: str, one: str) -> None:
    for number, tensor in enumerate(tensors):
        words = (
            f"Expected all {kind} tensors to be CUDA tensors, but {one} at index {number} has device '{tensor.device}'"
        )
        _check(tensor.is_cuda or DEVICES.are_one, words)


def _check(is_so: bool, words: str) -> None:
    if not is_so:
        raise RuntimeError(words)


def _cuda(index: int) -> torch.device:
    _check(index >= 0, f"Expected non-negative device index, but got {index}")
    return torch.device("cuda", index)


def _sizes(tensor: Tensor) -> list[int]:
    return list(tensor.shape)


def _apart_from(tensor: Tensor, dim: int) -> list[int]:
    return [size for at, size in enumerate(tensor.shape) if at != dim]
