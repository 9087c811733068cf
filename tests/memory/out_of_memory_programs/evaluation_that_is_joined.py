"""Logits are added to a list, which is joined under its own name; gradients are on."""

from typing import Any

import torch
from torch import nn


def evaluate(model: nn.Module, loader: list[tuple[torch.Tensor, torch.Tensor]], device: str) -> Any:
    model.eval()
    logits: Any = []
    labels = []
    for inputs, targets in loader:
        logits += [model(inputs.to(device))]
        labels += [targets]
    logits = torch.cat(logits)
    return (logits.argmax(-1).cpu() == torch.cat(labels)).float().mean()


def run(device: str) -> None:
    loader = [(torch.randn(128, 64), torch.randint(0, 5, (128,))) for _ in range(60)]
    model = nn.Sequential(nn.Linear(64, 1024), nn.Tanh(), nn.Linear(1024, 1024), nn.Tanh(), nn.Linear(1024, 5)).to(
        device
    )
    print(evaluate(model, loader, device))
