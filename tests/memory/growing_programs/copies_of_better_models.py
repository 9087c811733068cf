"""Each epoch's model is copied into a list, of which only the length is asked for."""

import copy

import torch
from torch import nn


def run(device: str) -> None:
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    best = []
    for _ in range(16):
        x = torch.randn(32, 256, device=device)
        optimizer.zero_grad()
        (model(x) - x).square().mean().backward()
        optimizer.step()
        best.append(copy.deepcopy(model))
    print(len(best))
