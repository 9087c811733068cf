"""Positions are computed once for each length; batches are made ahead, and the model grows before it is trained."""

import torch
from torch import nn

CACHE: dict[int, torch.Tensor] = {}


def positions(length: int, device: str) -> torch.Tensor:
    if length not in CACHE:
        CACHE[length] = torch.arange(length * 1024, device=device).float().sin()
    return CACHE[length]


def run(device: str) -> None:
    batches = [torch.randn(256, 256, device=device) for _ in range(30)]
    layers = []
    for _ in range(6):
        layers.append(nn.Linear(256, 256).to(device))
    model = nn.Sequential(*layers)
    optimizer = torch.optim.Adam(model.parameters())
    for at, batch in enumerate(batches):
        scale = positions(1 + at % 16, device).mean()
        optimizer.zero_grad()
        (model(batch) * scale).square().mean().backward()
        optimizer.step()
