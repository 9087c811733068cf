"""Batches of two parts are moved ahead; each part is taken out by the loop below."""

from collections import deque

import torch
from torch import nn


def run(device: str) -> None:
    net = nn.Sequential(nn.Flatten(), nn.Linear(3072, 10)).to(device)
    ahead: deque[tuple[torch.Tensor, torch.Tensor]] = deque()
    for _ in range(30):
        ahead.append((torch.randn(256, 3, 32, 32).to(device), torch.zeros(256).to(device)))
    right = torch.zeros((), device=device)
    while ahead:
        x, y = ahead.popleft()
        right += (net(x).argmax(1) == y).sum()
