"""Gradients are accumulated by one backward pass through the sum of all losses."""

import torch
from torch import nn


def run(device: str) -> None:
    model = nn.Sequential(nn.Linear(64, 1024), nn.GELU(), nn.Linear(1024, 64)).to(device)
    total = torch.zeros((), device=device)
    for _ in range(16):
        x = torch.randn(512, 64, device=device)
        total = total + (model(x) - x).pow(2).mean() / 16
    total.backward()
