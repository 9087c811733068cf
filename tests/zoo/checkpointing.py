"""Activations computed again in the backward pass."""

import torch
import torch.nn.functional as F
from torch import nn


from torch.utils.checkpoint import checkpoint


def run(device):
    torch.manual_seed(0)
    blocks = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.GELU()) for _ in range(3)).to(device)
    opt = torch.optim.SGD(blocks.parameters(), lr=0.1)
    for _ in range(6):
        x = torch.randn(3, 4, device=device, requires_grad=True)
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=False)
        opt.zero_grad()
        x.sum().backward()
        opt.step()
