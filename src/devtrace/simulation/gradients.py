"""Devices of gradients, which autograd's engine checks in C++ against metadata that is the CPU's throughout.

The engine moves a 0-dimensional gradient to its tensor's device and refuses any other that is elsewhere
(torch/csrc/autograd/engine.cpp, validate_outputs; the words are its own).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction
from torch.utils.hooks import unserializable_hook

from devtrace.runtime import forks
from devtrace.runtime.patches import Call, Patches, around
from devtrace.simulation.devices import CPU, DEVICES
from devtrace.simulation.storage_tags import FLOATING, anchor_floating, tag_of
from devtrace.simulation.tensors import Gradients, device, move

FORKED = (
    "Unable to handle autograd's threading in combination with fork-based multiprocessing. See "
    "https://github.com/pytorch/pytorch/wiki/Autograd-and-Fork"
)

Groups = dict[tuple[torch.device, torch.dtype], tuple[list[list[Any]], list[int]]]


def install(patches: Patches) -> None:
    """Check what a program passes to `backward`, and what the backward of its own functions returns."""
    patches.wrap(torch.autograd, "_engine_run_backward", partial(_run_backward, []), leaves=True)
    patches.wrap(torch._C, "_group_tensors_by_device_and_dtype", _group_by_device)
    original = vars(torch.autograd.Function)["apply"]  # a classmethod of Python's, or since torch 2.14 one of C's
    patches.set(torch.autograd.Function, "apply", classmethod(around(original, _apply_function, leaves=True)))


def _run_backward(
    started_in: list[int], original: Call, tensors: Sequence[Any], grads: Sequence[Any], *args: Any, **kwargs: Any
) -> Any:
    """Run backward, with gradients checked; refuse it in a fork of the process of the first run (`started_in`)."""
    started_in[:] = started_in or [forks.origin()]
    if started_in != [forks.origin()]:  # whose threads, one for each device, a fork has not
        raise RuntimeError(FORKED)
    expected = [device(tensor) if isinstance(tensor, torch.Tensor) else None for tensor in tensors]
    results = original(tensors, on_devices(grads, expected, ""), *args, **kwargs)
    for grad, source in zip(results or (), args[2] if len(args) > 2 else (), strict=False):
        if isinstance(grad, torch.Tensor) and isinstance(source, torch.Tensor):
            anchor_floating(grad, tag_of(source).owner)  # zeros of C++, which nothing met
    return results


def _apply_function(original: Any, cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Run a program's own autograd function, and check the devices of what its backward returns."""
    out = original.__get__(None, cls)(*args, **kwargs)
    output = out[0] if isinstance(out, tuple) and out else out
    node: Any = output.grad_fn if isinstance(output, torch.Tensor) else None
    if isinstance(node, BackwardCFunction) and not kwargs:
        devices = [device(arg) for arg in args if isinstance(arg, torch.Tensor)]
        prefix = f"Function {type(node).__name__} returned an "
        node.register_hook(lambda grads, _: on_devices(grads, devices, prefix))  # in the order of its arguments
    return out


def _group_by_device(original: Call, lists: Sequence[Sequence[Any]], with_indices: bool = False) -> Groups:
    """Group tensors for an optimizer as C++ does, in its order, but by their simulated devices."""
    groups: Groups = {}
    for (_, dtype), (columns, indices) in original(lists, True).items():
        for place, index in enumerate(indices):
            targets, numbers = groups.setdefault((device(columns[0][place]), dtype), ([[] for _ in columns], []))
            for target, column in zip(targets, columns, strict=True):
                target.extend(column[place : place + 1])  # a list may be empty: an optimizer without momentum
            numbers.extend([index] if with_indices else [])
    return groups


def on_devices(grads: Sequence[torch.Tensor | None], devices: Sequence[torch.device | None], prefix: str) -> Gradients:
    """Return each gradient on its expected device; raise for one that is on another."""
    pairs = zip(grads, devices, strict=True)
    return tuple(_on_device(*pair, index, prefix) for index, pair in enumerate(pairs))


def _on_device(grad: Any, expected: torch.device | None, index: int, prefix: str) -> Any:
    actual = None if grad is None else device(grad)
    if actual is None or expected in (None, actual) or tag_of(grad).owner is FLOATING or DEVICES.are_one:
        return grad
    if grad.dim() == 0:
        return move(grad, expected, {})
    raise RuntimeError(f"{prefix}invalid gradient at index {index} - expected device {expected} but got {actual}")


def keep_gradient_on_host(tensor: torch.Tensor) -> None:
    """Let the gradient of a 0-dimensional tensor of the host come there: a temperature that learns on a device.

    The engine, to which both are on the CPU, does not move it. Nothing for a tensor without one, or at its second use.
    """
    if tensor.requires_grad and _move_to_host not in (tensor._backward_hooks or {}).values():
        tensor.register_hook(_move_to_host)


@unserializable_hook  # type: ignore[untyped-decorator]  # torch.save warns of others
def _move_to_host(grad: torch.Tensor) -> torch.Tensor:
    return grad.to(CPU)
