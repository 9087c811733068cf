"""Predictions of an evaluation are few numbers each, and are joined at its end."""

import torch
from torch import nn


@torch.no_grad()
def run(device: str) -> None:
    model = nn.Sequential(nn.Linear(64, 2048), nn.Tanh(), nn.Linear(2048, 10)).to(device).eval()
    found = []
    for _ in range(40):
        found.append(model(torch.randn(512, 64, device=device)).argmax(-1))
    torch.cat(found)
