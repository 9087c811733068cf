"""Two functions share a list; no variable of the program has it."""

from collections.abc import Callable

import torch
from torch import nn


def tracker() -> tuple[Callable[[torch.Tensor], None], Callable[[], torch.Tensor]]:
    values: list[torch.Tensor] = []

    def track(value: torch.Tensor) -> None:
        values.append(value)

    def mean() -> torch.Tensor:
        return torch.stack(values).mean()

    return track, mean


def run(device: str) -> None:
    net = nn.Sequential(nn.Linear(64, 2048), nn.Tanh(), nn.Linear(2048, 64)).to(device)
    track, mean = tracker()
    for _ in range(30):
        x = torch.randn(256, 64, device=device)
        track((net(x) - x).pow(2).mean())
    print(float(mean()))
