"""Adapters attached after the move, and moved."""

import torch
import torch.nn.functional as F
from torch import nn


class Adapter(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.down = nn.Linear(inner.in_features, 2, bias=False)
        self.up = nn.Linear(2, inner.out_features, bias=False)

    def forward(self, x):
        return self.inner(x) + self.up(self.down(x))


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)).to(device).requires_grad_(False)
    net[0] = Adapter(net[0])
    net.to(device)
    opt = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad])
    for _ in range(12):
        loss = net(torch.randn(3, 4, device=device)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
