"""Puts the parts of a model on devices as accelerate's `dispatch_model` and `cpu_offload` do, with their attributes."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import nn


class AlignDevices:
    """A hook: brings what a module is given to its device; an offloaded one has data only while it runs."""

    def __init__(self, device: int, *, offload: bool = False) -> None:
        self.execution_device, self.offload = device, offload
        self.weights: dict[str, torch.Tensor] = {}

    def before(self, module: nn.Module, given: tuple[torch.Tensor, ...]) -> list[torch.Tensor]:
        for name, weight in self.weights.items():
            module._parameters[name] = nn.Parameter(weight.to(f"cuda:{self.execution_device}"))
        return [each.to(f"cuda:{self.execution_device}") for each in given]

    def after(self, module: nn.Module) -> None:
        for name, weight in self.weights.items():
            module._parameters[name] = nn.Parameter(weight.to("meta"))


def add_hook(module: nn.Module, hook: AlignDevices) -> None:
    old, attributes = module.forward, vars(module)

    def forward(*given: torch.Tensor) -> Any:
        moved = hook.before(module, given)
        result = old(*moved)
        hook.after(module)
        return result

    if hook.offload:
        hook.weights = {name: weight.detach().clone() for name, weight in module.named_parameters()}
        hook.after(module)
    attributes |= {"_hf_hook": hook, "forward": functools.update_wrapper(forward, old)}


def dispatch(model: nn.Module, device_map: dict[str, int]) -> nn.Module:
    for name, device in device_map.items():
        add_hook(model.get_submodule(name).to(f"cuda:{device}"), AlignDevices(device))
    vars(model)["hf_device_map"] = dict(device_map)
    return model


def offload(model: nn.Module) -> nn.Module:
    for module in model.children():
        add_hook(module, AlignDevices(0, offload=True))
    return model
