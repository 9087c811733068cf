"""The losses of a validation are added up with their graphs."""

import torch
from torch import nn


def run(device: str) -> None:
    model = nn.Sequential(nn.Linear(64, 1024), nn.Tanh(), nn.Linear(1024, 64)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(2):
        x = torch.randn(256, 64, device=device)
        optimizer.zero_grad()
        (model(x) - x).square().mean().backward()
        optimizer.step()
    total = torch.zeros((), device=device)
    for _ in range(20):
        batch = torch.randn(256, 64, device=device)
        total += (model(batch) - batch).square().mean()
