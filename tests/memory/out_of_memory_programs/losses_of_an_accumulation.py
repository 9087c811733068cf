"""Losses of all parts of a batch are listed, and one backward pass runs through their mean."""

import torch
from torch import nn
from torch.nn import functional

PARTS = 24


def run(device: str) -> None:
    net = nn.Sequential(nn.Linear(64, 1024), nn.GELU(), nn.Linear(1024, 8)).to(device)
    losses = []
    for _ in range(PARTS):
        x = torch.randn(512, 64, device=device)
        y = torch.randint(0, 8, (512,), device=device)
        losses.append(functional.cross_entropy(net(x), y))
    torch.stack(losses).mean().backward()
