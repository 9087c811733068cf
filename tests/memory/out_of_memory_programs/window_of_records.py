"""A window of records, one of whose parts keeps a graph."""

from collections import deque

import torch
from torch import nn


def run(device: str) -> None:
    body = nn.Sequential(nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 64)).to(device)
    window: deque[dict[str, object]] = deque(maxlen=100)
    for step in range(30):
        x = torch.randn(256, 64, device=device)
        drift = (body(x) - x).abs().mean()
        window.append({"step": step, "drift": drift, "size": float(drift)})
