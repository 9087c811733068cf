"""Snapshots of a cyclic schedule predict together: all of them are used after training."""

import copy

import torch
from torch import nn
from torch.func import functional_call


def run(device: str) -> None:
    model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 16)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    members = []
    for _ in range(8):
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(32, 256, device=device)).square().mean().backward()
            optimizer.step()
        members.append(copy.deepcopy(model.state_dict()))
    x = torch.randn(8, 256, device=device)
    with torch.no_grad():
        print(torch.stack([functional_call(model, member, (x,)) for member in members]).mean() > 9)
