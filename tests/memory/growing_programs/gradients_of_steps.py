"""The gradients of each step are collected for a plot of their noise."""

import torch
from torch import nn


class Noise:
    def __init__(self) -> None:
        self.steps: list[list[torch.Tensor]] = []

    def look(self, net: nn.Module) -> None:
        self.steps.append([p.grad.clone() for p in net.parameters() if p.grad is not None])


def run(device: str) -> None:
    net = nn.Sequential(nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 512)).to(device)
    optimizer = torch.optim.Adam(net.parameters())
    noise = Noise()
    for _ in range(20):
        net(torch.randn(32, 512, device=device)).square().mean().backward()
        noise.look(net)
        optimizer.step()
        optimizer.zero_grad()
