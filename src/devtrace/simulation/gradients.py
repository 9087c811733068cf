"""Devices of gradients, which autograd's engine checks in C++ against metadata that is the CPU's throughout.

The engine moves a 0-dimensional gradient to its tensor's device and refuses any other that is elsewhere
(torch/csrc/autograd/engine.cpp, validate_outputs; the words are its own).
"""

import functools
import os
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction

from devtrace.runtime.patches import Patches
from devtrace.runtime.tracebacks import leave
from devtrace.simulation.cuda_features import backward_streams
from devtrace.simulation.storage_tags import FLOATING, MEMORY, anchor_floating, tag_of
from devtrace.simulation.tensors import Gradients, device, move

FORKED = (
    "Unable to handle autograd's threading in combination with fork-based multiprocessing. See "
    "https://github.com/pytorch/pytorch/wiki/Autograd-and-Fork"
)

Groups = dict[tuple[torch.device, torch.dtype], tuple[list[list[Any]], list[int]]]


def install(patches: Patches) -> None:
    """Check what a program passes to `backward`, and what the backward of its own functions returns."""
    patches.set(torch.autograd, "_engine_run_backward", _checking(torch.autograd._engine_run_backward))  # type: ignore[attr-defined]
    patches.set(torch._C, "_group_tensors_by_device_and_dtype", _grouping(torch._C._group_tensors_by_device_and_dtype))
    own = vars(torch.autograd.Function)["apply"]  # a classmethod of Python's, or since torch 2.14 one of C's
    patches.set(torch.autograd.Function, "apply", classmethod(_applying(own)))


def _checking(original: Callable[..., Any]) -> Callable[..., Any]:
    started_in = 0  # where there is a device, the engine's first run starts a thread for each

    @functools.wraps(original)
    def run_backward(tensors: Sequence[Any], grads: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        nonlocal started_in
        started_in = started_in or os.getpid()
        if started_in != os.getpid():
            raise RuntimeError(FORKED)
        expected = [device(tensor) if isinstance(tensor, torch.Tensor) else None for tensor in tensors]
        with backward_streams.kept():
            try:
                found = original(tensors, on_devices(grads, expected, ""), *args, **kwargs)
            except BaseException as error:
                leave(error)
                raise
        for grad, asked in zip(found or (), args[2] if len(args) > 2 else (), strict=False):
            if isinstance(grad, torch.Tensor) and isinstance(asked, torch.Tensor):
                anchor_floating(grad, tag_of(asked).owner)  # zeros of C++, which nothing met
        return found

    return run_backward


def _applying(original: Any) -> Callable[..., Any]:
    @functools.wraps(original)
    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            out = original.__get__(None, cls)(*args, **kwargs)
        except BaseException as error:
            leave(error)
            raise
        first = out[0] if isinstance(out, tuple) and out else out
        node: Any = first.grad_fn if isinstance(first, torch.Tensor) else None
        if isinstance(node, BackwardCFunction):
            if not kwargs:
                devices = [device(arg) for arg in args if isinstance(arg, torch.Tensor)]
                node.register_hook(functools.partial(_as_its_arguments, devices, type(node).__name__))
            backward_streams.follow(node)
        return out

    return apply


def _grouping(original: Callable[..., Groups]) -> Callable[..., Groups]:
    @functools.wraps(original)
    def group(lists: Sequence[Sequence[Any]], with_indices: bool = False) -> Groups:
        """As C++ groups them, in its order, but by the devices of the simulation: what optimizers work on at once."""
        groups: Groups = {}
        for (_, dtype), (columns, numbers) in original(lists, True).items():
            for at, number in enumerate(numbers):
                chosen = groups.setdefault((device(columns[0][at]), dtype), ([[] for _ in columns], []))
                for into, column in zip(chosen[0], columns, strict=True):
                    into.extend(column[at : at + 1])  # a list may be empty: an optimizer without momentum
                chosen[1].extend([number] if with_indices else [])
        return groups

    return group


def _as_its_arguments(devices: Sequence[torch.device], name: str, grads: Gradients, _: Any) -> Gradients:
    """Check after a function's backward: its gradients are those of its tensor arguments, in their order."""
    return on_devices(grads, devices, f"Function {name} returned an ")


def on_devices(grads: Sequence[torch.Tensor | None], devices: Sequence[torch.device | None], prefix: str) -> Gradients:
    """Return each gradient on its expected device; raise for one that is on another."""
    return tuple(
        grad if grad is None or expected is None else _on_device(grad, expected, number, prefix)
        for number, (grad, expected) in enumerate(zip(grads, devices, strict=True))
    )


def _on_device(grad: torch.Tensor, expected: torch.device, number: int, prefix: str) -> torch.Tensor:
    actual = device(grad)
    if actual == expected or tag_of(grad).owner is FLOATING or MEMORY.is_one:
        return grad
    if grad.dim() == 0:
        return move(grad, expected, {})
    raise RuntimeError(f"{prefix}invalid gradient at index {number} - expected device {expected} but got {actual}")
