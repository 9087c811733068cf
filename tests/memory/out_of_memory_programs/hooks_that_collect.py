"""Hooks collect the outputs of a layer for a plot."""

import torch
from torch import nn


def watch(layer: nn.Module) -> list[torch.Tensor]:
    seen: list[torch.Tensor] = []
    layer.register_forward_hook(lambda module, inputs, output: seen.append(output))
    return seen


def run(device: str) -> None:
    net = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 8)).to(device)
    shown = watch(net[0])
    with torch.no_grad():
        for _ in range(40):
            net(torch.randn(512, 64, device=device))
    print(len(shown))
