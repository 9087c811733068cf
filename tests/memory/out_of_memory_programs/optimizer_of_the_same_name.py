"""A second model is trained; the first lives on by its name, and by the optimizer until that gets its new value."""

import torch
from torch import nn


def build(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(256, width), nn.ReLU(), nn.Linear(width, 256))


def fitted(model: nn.Module, device: str, steps: int = 2) -> torch.optim.Optimizer:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(32, 256, device=device)).pow(2).mean().backward()
        optimizer.step()
    return optimizer


def run(device: str) -> float:
    first = build(2048).to(device)
    optimizer = fitted(first, device)
    print(sum(p.numel() for p in first.parameters()))
    second = build(4096).to(device)
    optimizer = fitted(second, device)
    return float(optimizer.param_groups[0]["lr"])
