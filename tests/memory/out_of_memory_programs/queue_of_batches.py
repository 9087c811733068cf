"""A queue is filled with batches that are on the device already."""

from queue import Queue

import torch
from torch import nn


def run(device: str) -> None:
    net = nn.Linear(4096, 64).to(device)
    batches: Queue[torch.Tensor] = Queue()
    for _ in range(40):
        batches.put(torch.randn(128, 4096).to(device))
    total = torch.zeros((), device=device)
    with torch.no_grad():
        while not batches.empty():
            total += net(batches.get()).mean()
