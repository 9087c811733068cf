"""Position tables are remembered by a cache, one for each length."""

from functools import cache

import torch


@cache
def table(length: int, device: str) -> torch.Tensor:
    angles = torch.arange(length, device=device)[:, None] / torch.arange(1, 257, device=device)
    return angles.sin()


def run(device: str) -> None:
    total = 0.0
    for length in range(1000, 1100):
        total += float(table(length, device).sum())
    print(total)
