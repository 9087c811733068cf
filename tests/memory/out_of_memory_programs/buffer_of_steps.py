"""A buffer of named tuples."""

from typing import NamedTuple

import torch


class Step(NamedTuple):
    state: torch.Tensor
    after: torch.Tensor


class Buffer:
    def __init__(self) -> None:
        self.steps: list[Step] = []

    def push(self, *parts: torch.Tensor) -> None:
        self.steps.append(Step(*parts))


def run(device: str) -> None:
    buffer = Buffer()
    state = torch.rand(256, 256, device=device)
    for _ in range(300):
        after = torch.rand(256, 256, device=device)
        buffer.push(state, after)
        state = after
