"""prodigyopt 1.0 reads two numbers of every parameter in every step (mended in 1.1)."""

import torch
from prodigyopt import Prodigy
from torch import nn


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 2)).to(device)
    optimizer = Prodigy(net.parameters())
    data = torch.rand(10, 3, device=device)
    for _ in range(6):
        optimizer.zero_grad()
        net(data).square().mean().backward()
        optimizer.step()
