"""The two bounds of an actor are plain attributes."""

import torch
from torch import nn


class Actor(nn.Module):
    def __init__(self, low, high):
        super().__init__()
        self.net = nn.Linear(3, 2)
        self.low = torch.tensor(low)
        self.high = torch.tensor(high)
    def forward(self, s):
        return torch.clamp(self.net(s), self.low, self.high)


def run(device):
    actor = Actor([-1.0, -2.0], [1.0, 2.0]).to(device)
    actor(torch.randn(4, 3, device=device))
