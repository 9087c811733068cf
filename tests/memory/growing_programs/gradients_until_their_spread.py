"""Gradients of all steps are kept, and their spread is computed when the last is there."""

import torch
from torch import nn


def flat(net: nn.Module) -> torch.Tensor:
    return torch.cat([p.grad.reshape(-1) for p in net.parameters() if p.grad is not None])


def run(device: str) -> None:
    net = nn.Sequential(nn.Linear(128, 1024), nn.GELU(), nn.Linear(1024, 128)).to(device)
    seen = {}
    for step in range(24):
        for p in net.parameters():
            p.grad = None
        net(torch.randn(16, 128, device=device)).square().mean().backward()
        seen[step] = flat(net)
    torch.stack(list(seen.values())).var(0).mean()
