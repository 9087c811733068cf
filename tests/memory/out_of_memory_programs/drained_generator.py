"""A generator is drained into a dictionary."""

from collections.abc import Iterator

import torch
from torch import nn


def pairs(model: nn.Module, device: str) -> Iterator[tuple[int, torch.Tensor]]:
    for number in range(40):
        yield number, model(torch.randn(256, 64, device=device))


def run(device: str) -> None:
    model = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 64)).to(device)
    table = dict(pairs(model, device))
    print(len(table))
