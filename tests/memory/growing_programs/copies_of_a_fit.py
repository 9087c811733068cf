"""A fit keeps a copy of its net after each epoch, and the last of them predicts."""

from copy import deepcopy

import torch
from torch import nn


class Fit:
    def __init__(self, device: str) -> None:
        self.net = nn.Sequential(nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 16)).to(device)
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.snapshots: dict[int, nn.Module] = {}

    def epoch(self, number: int, x: torch.Tensor) -> None:
        self.optimizer.zero_grad()
        self.net(x).square().mean().backward()
        self.optimizer.step()
        self.snapshots[number] = deepcopy(self.net)


def run(device: str) -> None:
    fit = Fit(device)
    for number in range(20):
        fit.epoch(number, torch.randn(32, 512, device=device))
    fit.snapshots[19](torch.zeros(1, 512, device=device))
