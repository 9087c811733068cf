"""Residual blocks dropped at random by a decorator."""
import functools

import torch
import torch.nn as nn


def droppable(rate):
    def wrap(forward):
        @functools.wraps(forward)
        def inner(self, x):
            if not self.training:
                return forward(self, x)
            keep = (torch.rand(x.shape[0], 1) > rate).float()
            return x + keep * (forward(self, x) - x)
        return inner
    return wrap


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.lin = nn.Linear(width, width)

    @droppable(0.2)
    def forward(self, x):
        return torch.tanh(self.lin(x))


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(Block(6), Block(6), nn.Linear(6, 1)).to(device)
    for _ in range(3):
        out = net(torch.randn(4, 6, device=device))
        out.sum().backward()
    return out.sum().item()
