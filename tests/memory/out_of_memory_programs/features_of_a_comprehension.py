"""A list is made in one expression: it has no name until it is done."""

import torch
from torch import nn


def run(device: str) -> None:
    encoder = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 32)).to(device)
    loader = [torch.randn(512, 64) for _ in range(24)]
    features = torch.cat([encoder(batch.to(device)) for batch in loader])
    print(features.shape)
