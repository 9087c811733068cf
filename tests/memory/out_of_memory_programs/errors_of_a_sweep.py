"""A sweep goes on after a bad setting, and its report keeps the error that it met."""

import torch
from torch import nn


class Sweep:
    def __init__(self) -> None:
        self.errors: dict[int, Exception] = {}

    def attempt(self, width: int, device: str) -> None:
        first = nn.Linear(64, width).to(device)
        hidden = first(torch.randn(2048, 64, device=device))
        second = nn.Linear(1000, 10).to(device)
        print(second(hidden).shape)

    def over(self, widths: range, device: str) -> None:
        for width in widths:
            try:
                self.attempt(width, device)
            except RuntimeError as problem:
                if isinstance(problem, torch.OutOfMemoryError):
                    raise
                self.errors[width] = problem


def run(device: str) -> None:
    Sweep().over(range(500, 520), device)
