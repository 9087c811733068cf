"""A model is cast, and then gets an adapter."""

import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, inner, rank):
        super().__init__()
        self.inner = inner
        self.down = nn.Linear(inner.in_features, rank, bias=False, device=inner.weight.device)
        self.up = nn.Linear(rank, inner.out_features, bias=False, device=inner.weight.device)

    def forward(self, x):
        return self.inner(x) + self.up(self.down(x))


def adapt(net, rank):
    for name, child in list(net.named_children()):
        if isinstance(child, nn.Linear):
            setattr(net, name, Adapted(child, rank))


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 2)).to(device)
    net.bfloat16()
    adapt(net, 2)
    x = torch.randn(3, 6, device=device, dtype=torch.bfloat16)
    return net(x).float().sum().item()
