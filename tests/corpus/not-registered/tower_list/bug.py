"""A stack of layers of configurable depth."""
import torch
import torch.nn as nn


class Tower(nn.Module):
    def __init__(self, widths):
        super().__init__()
        self.entry = nn.Linear(widths[0], widths[1])
        self.stages = [nn.Linear(a, b) for a, b in zip(widths[1:], widths[2:])]

    def forward(self, x):
        x = self.entry(x)
        for stage in self.stages:
            x = stage(torch.relu(x))
        return x


def run(device):
    torch.manual_seed(0)
    tower = Tower([3, 6, 6, 2]).to(device)
    return tower(torch.randn(4, 3).to(device)).mean().item()
