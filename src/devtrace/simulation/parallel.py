"""The C++ below `torch.nn.parallel.comm`, which only CUDA builds have: the copies of DataParallel."""

from typing import Any

import torch

from devtrace.runtime.patches import Patches

Tensor = torch.Tensor


def install(patches: Patches) -> None:
    """DataParallel's own Python does the rest; its background streams are made anew, and forgotten afterwards."""
    from torch.nn.parallel import _functions

    for function in (broadcast, broadcast_out, broadcast_coalesced, scatter, scatter_out, gather, gather_out):
        patches.set(torch._C, f"_{function.__name__}", function)
    patches.set(_functions, "_streams", None)


def broadcast(tensor: Tensor, devices: list[int]) -> list[Tensor]:
    """Return the tensor itself for its own device, a copy for every other."""
    return [tensor.to(torch.device("cuda", index), non_blocking=True) for index in devices]


def broadcast_out(tensor: Tensor, out: list[Tensor]) -> list[Tensor]:
    return [target.copy_(tensor, non_blocking=True) for target in out]


def broadcast_coalesced(tensors: list[Tensor], devices: list[int], buffer_size: int) -> list[list[Tensor]]:
    """One list of tensors per device; the first device's are the tensors themselves."""
    return [[broadcast(tensor, [index])[0].detach() for tensor in tensors] for index in devices]


def scatter(tensor: Tensor, devices: list[int], sizes: Any, dim: int, streams: Any) -> list[Tensor]:
    chunks = tensor.split(list(sizes), dim) if sizes is not None else tensor.chunk(len(devices), dim)
    return [
        chunk.to(torch.device("cuda", index), non_blocking=True) for chunk, index in zip(chunks, devices, strict=False)
    ]


def scatter_out(tensor: Tensor, out: list[Tensor], dim: int, streams: Any) -> list[Tensor]:
    chunks = tensor.split([target.size(dim) for target in out], dim)
    return [target.copy_(chunk) for target, chunk in zip(out, chunks, strict=True)]


def gather(tensors: list[Tensor], dim: int, destination: int | None) -> Tensor:
    """On the destination, or on the host for -1."""
    device = torch.device("cpu") if destination == -1 else torch.device("cuda", destination or 0)
    shape = list(tensors[0].shape)
    shape[dim] = sum(tensor.size(dim) for tensor in tensors)
    return gather_out(tensors, torch.empty(shape, dtype=tensors[0].dtype, device=device), dim)


def gather_out(tensors: list[Tensor], out: Tensor, dim: int) -> Tensor:
    sizes = [tensor.size(dim) for tensor in tensors]
    for target, tensor in zip(out.split(sizes, dim), tensors, strict=True):
        target.copy_(tensor, non_blocking=True)
    return out
