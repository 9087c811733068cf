"""The last of several models is the one that is used: it cannot be let go of in the loop."""

import torch
from torch import nn


def run(device: str) -> None:
    for width in (4096, 4000, 3000):
        net = nn.Sequential(nn.Linear(512, width), nn.ReLU(), nn.Linear(width, 512)).to(device)
        loss = net(torch.randn(8, 512, device=device)).square().mean()
        loss.backward()
    print(net(torch.randn(8, 512, device=device)).mean().item() > 9)
