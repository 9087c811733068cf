"""Each epoch's state is remembered by a deep copy."""

import copy

import torch
from torch import nn


def run(device: str) -> None:
    model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    history = []
    for _ in range(16):
        optimizer.zero_grad()
        model(torch.randn(32, 256, device=device)).square().mean().backward()
        optimizer.step()
        history.append(copy.deepcopy(model.state_dict()))
