"""All batches of a loader are moved before the first epoch."""

import torch
from torch import nn


def run(device: str) -> None:
    loader = [(torch.randn(256, 4096), torch.zeros(256, dtype=torch.long)) for _ in range(16)]
    net = nn.Linear(4096, 2).to(device)
    ready = [(x.to(device), y.to(device)) for x, y in loader]
    for _ in range(2):
        for x, y in ready:
            net.zero_grad()
            nn.functional.cross_entropy(net(x), y).backward()
