"""Each model is the teacher of the next."""

import torch
from torch import nn


def run(device: str) -> None:
    net: nn.Sequential | None = None
    for width in (4096, 4000, 3000):
        teacher = net
        net = nn.Sequential(nn.Linear(512, width), nn.ReLU(), nn.Linear(width, 512)).to(device)
        x = torch.randn(8, 512, device=device)
        with torch.no_grad():
            goal = teacher(x) if teacher is not None else x
        (net(x) - goal).square().mean().backward()
