"""A small model is trained before a large one, and is not needed after its score is known."""

import torch
from torch import nn


def scored(net: nn.Module, device: str) -> float:
    x = torch.randn(64, 512, device=device)
    with torch.no_grad():
        return float(net(x).square().mean())


def run(device: str) -> None:
    baseline = nn.Sequential(nn.Linear(512, 4096), nn.ReLU(), nn.Linear(4096, 512)).to(device)
    reference = scored(baseline, device)
    candidate = nn.Sequential(nn.Linear(512, 6144), nn.ReLU(), nn.Linear(6144, 512)).to(device)
    print(scored(candidate, device) / reference)
