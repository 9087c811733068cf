"""Buffers by hand: frequencies kept by a lazily filled attribute of a helper, before the move."""

import torch
from torch import nn


class Freqs:
    def __init__(self):
        self.of = {}

    def __call__(self, n):
        if n not in self.of:
            self.of[n] = torch.linspace(0, 1, n)
        return self.of[n]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.freqs, self.out = Freqs(), nn.Linear(4, 1)

    def forward(self, x):
        return self.out(x * self.freqs(x.size(-1)))


def run(device):
    torch.manual_seed(0)
    net = Net()
    net(torch.ones(2, 4))
    net = net.to(device)
    total = 0.0
    for _ in range(3):
        total += net(torch.rand(2, 4).to(device)).sum().item()
    return total
