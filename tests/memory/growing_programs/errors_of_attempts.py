"""A sweep keeps the exceptions of its attempts, and these keep the tensors of their frames."""

from typing import Any

import torch
from torch import nn


def attempt(model: nn.Module, size: int, device: str) -> Any:
    x = torch.randn(size, 512, device=device)
    hidden = model(x)
    if size > 1:
        raise ValueError(f"no room for {size}")
    return hidden


def run(device: str) -> int:
    model = nn.Linear(512, 2048).to(device)
    outcome: dict[int, Any] = {}
    for number in range(30):
        try:
            outcome[number] = attempt(model, 512, device)
        except ValueError as problem:
            outcome[number] = problem
    return len(outcome)
