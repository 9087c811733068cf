"""A copy of the model is kept after each epoch; nothing but their number is read."""

import copy

import torch
from torch import nn


def run(device: str) -> None:
    model = nn.Sequential(nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 512)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kept = []
    for _ in range(16):
        x = torch.randn(16, 512, device=device)
        optimizer.zero_grad()
        (model(x) - x).abs().mean().backward()
        optimizer.step()
        kept.append(copy.deepcopy(model))
    print(len(kept))
