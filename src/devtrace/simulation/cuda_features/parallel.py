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
    """Put these functions in place of `torch._C._broadcast` and the others; DataParallel's own Python calls them."""
    from torch.nn.parallel import _functions

    for function in (broadcast, broadcast_out, broadcast_coalesced, scatter, scatter_out, gather, gather_out):
        patches.set(torch._C, f"_{function.__name__}", function)
    patches.set(_functions, "_streams", None)  # made again, and forgotten afterwards


def broadcast(tensor: Tensor, devices: list[int]) -> list[Tensor]:
    """Return the tensor itself for its own device, a copy for every other."""
    return [tensor.to(_cuda(index), non_blocking=True) for index in devices]


def broadcast_out(tensor: Tensor, out: list[Tensor]) -> list[Tensor]:
    _expect_cuda(out, "output", "output tensor")
    for target in out:
        requirement = f"same shape as the source tensor {[*tensor.shape]}, but got {[*target.shape]}"
        _expect(target.shape == tensor.shape, f"Expected all output tensors to have {requirement}")
    return [target.copy_(tensor, non_blocking=True) for target in out]


def broadcast_coalesced(tensors: list[Tensor], devices: list[int], buffer_size: int) -> list[list[Tensor]]:
    """One list of tensors per device; the first device's are the tensors themselves."""
    here = all(tensor.get_device() == devices[0] for tensor in tensors)
    _expect(here or DEVICES.are_one, f"All tensors must be on devices[0]: {devices[0]}")
    copies = [[broadcast(tensor, [index])[0].detach() for tensor in tensors] for index in devices[1:]]
    return [tensors, *copies]


def scatter(tensor: Tensor, devices: list[int], sizes: Any, dim: int, streams: Any) -> list[Tensor]:
    _expect(bool(devices), "Expected at least one device to scatter to")
    lengths = f"len(devices) = {len(devices)} and len(chunk_sizes) = {len(sizes or ())}"
    fits = sizes is None or len(sizes) == len(devices)
    _expect(fits, f"Expected devices and chunk_sizes to be of same length, but got {lengths}")
    chunks = tensor.split(list(sizes), dim) if sizes is not None else tensor.chunk(len(devices), dim)
    return [chunk.to(_cuda(index), non_blocking=True) for chunk, index in zip(chunks, devices, strict=False)]


def scatter_out(tensor: Tensor, out: list[Tensor], dim: int, streams: Any) -> list[Tensor]:
    _expect(bool(out), "Expected at least one output tensor to scatter to")
    _expect_cuda(out, "output", "output tensor")
    chunks = tensor.split([target.size(dim) for target in out], dim)  # raises where they are not all of it
    for target, chunk in zip(out, chunks, strict=True):
        words = f"Output tensor has incorrect shape: {[*target.shape]}, expected {[*chunk.shape]}"
        _expect(target.shape == chunk.shape, words)
    return [target.copy_(chunk) for target, chunk in zip(out, chunks, strict=True)]


def gather(tensors: list[Tensor], dim: int, destination: int | None) -> Tensor:
    """Join the tensors on the destination (-1: the host), in the memory format of the first."""
    shape = _gathered_shape(tensors, dim)
    device = torch.device("cpu") if destination == -1 else _cuda(destination or 0)
    layout = torch._prims_common.suggest_memory_format(tensors[0])
    return gather_out(tensors, torch.empty(shape, dtype=tensors[0].dtype, device=device, memory_format=layout), dim)


def gather_out(tensors: list[Tensor], out: Tensor, dim: int) -> Tensor:
    shape = _gathered_shape(tensors, dim)
    _expect(out.shape == shape, f"Expected out tensor to have shape {[*shape]}, but got {[*out.shape]}")
    for target, tensor in zip(out.split([tensor.size(dim) for tensor in tensors], dim), tensors, strict=True):
        target.copy_(tensor, non_blocking=True)
    return out


def _gathered_shape(tensors: list[Tensor], dim: int) -> torch.Size:
    """Return the shape of the tensors joined along `dim`; raise where they do not fit each other."""
    _expect(bool(tensors), "Expected at least one tensor to gather from")
    _expect_cuda(tensors, "input", "tensor")
    first = tensors[0]
    for index, tensor in enumerate(tensors):
        words = "Expected all input tensors to have the same number of dimensions, but tensor at index "
        _expect(tensor.dim() == first.dim(), f"{words}{index}has {tensor.dim()} dimensions, (expected {first.dim()})")
        expected = _shape_with(first, dim, tensor.size(dim))
        words = f"Input tensor at index {index} has invalid shape {[*tensor.shape]}, but expected {[*expected]}"
        _expect(tensor.shape == expected, words)
    return _shape_with(first, dim, sum(tensor.size(dim) for tensor in tensors))


def _shape_with(tensor: Tensor, dim: int, size: int) -> torch.Size:
    """Return the shape of a tensor with another size in one dimension."""
    shape = list(tensor.shape)
    shape[dim] = size
    return torch.Size(shape)


def _expect_cuda(tensors: Sequence[Tensor], kind: str, noun: str) -> None:
    for index, tensor in enumerate(tensors):
        mismatch = f"but {noun} at index {index} has device '{tensor.device}'"
        _expect(tensor.is_cuda or DEVICES.are_one, f"Expected all {kind} tensors to be CUDA tensors, {mismatch}")


def _expect(condition: bool, words: str) -> None:
    if not condition:
        raise RuntimeError(words)


def _cuda(index: int) -> torch.device:
    _expect(index >= 0, f"Expected non-negative device index, but got {index}")
    return torch.device("cuda", index)
