"""Snapshots by epoch, of clones of the state."""

import torch
from torch import nn

SNAPSHOTS: dict[int, dict[str, torch.Tensor]] = {}


def snapshot(model: nn.Module, epoch: int) -> None:
    SNAPSHOTS[epoch] = {key: value.clone() for key, value in model.state_dict().items()}


def run(device: str) -> None:
    model = nn.Sequential(nn.Linear(512, 512), nn.BatchNorm1d(512), nn.Linear(512, 512)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(14):
        for _ in range(2):
            loss = model(torch.randn(16, 512, device=device)).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        snapshot(model, epoch)
