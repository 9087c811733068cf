"""Healthy: the program looks for a batch that fits, and goes on with it."""

import torch
from torch import nn


def run(device: str) -> None:
    net = nn.Sequential(nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, 256)).to(device)
    batch = 8192
    while True:
        try:
            net(torch.randn(batch, 256, device=device)).square().mean().backward()
            break
        except torch.OutOfMemoryError:
            net.zero_grad()
            batch //= 2
    print(batch)
