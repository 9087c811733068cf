"""Outputs of a comprehension are joined under the same name; gradients are on."""

from typing import Any

import torch
from torch import nn


def run(device: str) -> float:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 2048), nn.Tanh(), nn.Linear(2048, 1024)).to(device)
    batches = [torch.randn(64, 64) for _ in range(56)]
    outs: Any = [model(batch.to(device)) for batch in batches]
    outs = torch.cat(outs)
    return float(outs.mean())
