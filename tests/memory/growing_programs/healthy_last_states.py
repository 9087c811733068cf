"""The last three states are kept for their average, and the best of them; a pool is filled before training."""

import copy

import torch
from torch import nn


def run(device: str) -> None:
    pool = [torch.randn(256, 256, device=device) for _ in range(8)]
    model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    last: list[dict[str, torch.Tensor]] = []
    best, lowest = {}, float("inf")
    for epoch in range(16):
        optimizer.zero_grad()
        loss = model(pool[epoch % 8]).square().mean()
        loss.backward()
        optimizer.step()
        last.append(copy.deepcopy(model.state_dict()))
        last = last[-3:]
        if loss.item() < lowest:
            lowest, best = loss.item(), copy.deepcopy(model.state_dict())
    model.load_state_dict({key: sum(each[key] for each in last) / len(last) for key in best})
