"""Gradients of 0-dimensional host tensors, which operators of a device take for numbers: a temperature that learns.

Autograd's engine moves such a gradient to its tensor's device (torch/csrc/autograd/engine.cpp, validate_outputs). In a
simulation both are on the CPU to the engine, so a hook moves it.
"""

import torch
from torch.utils.hooks import unserializable_hook

from devtrace.simulation.storage_tags import CPU


def keep_gradient_on_host(tensor: torch.Tensor) -> None:
    """Let the gradient of a tensor come to the host; nothing for a tensor without one, or at its second use."""
    if tensor.requires_grad and _to_host not in (tensor._backward_hooks or {}).values():
        tensor.register_hook(_to_host)


@unserializable_hook  # type: ignore[untyped-decorator]  # torch.save warns of others
def _to_host(grad: torch.Tensor) -> torch.Tensor:
    return grad.to(CPU)
