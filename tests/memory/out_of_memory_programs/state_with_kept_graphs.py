"""A state goes from chunk to chunk, and `retain_graph=True` hides the error that says so."""

from typing import Any

import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.LSTM(64, 128, batch_first=True)
        self.out = nn.Linear(128, 8)

    def forward(self, x: torch.Tensor, state: Any) -> tuple[torch.Tensor, Any]:
        hidden, state = self.rnn(x, state)
        return self.out(hidden), state


def run(device: str) -> None:
    reader = Reader().to(device)
    state = None
    for _ in range(20):
        scores, state = reader(torch.randn(64, 16, 64, device=device), state)
        loss = scores.pow(2).mean()
        loss.backward(retain_graph=True)
