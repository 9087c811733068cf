"""An embedding too large for the device stays on the host on purpose; its vectors are moved, its gradients come back."""

import torch
from torch import nn


def run(device):
    table, top = nn.EmbeddingBag(1000, 8, sparse=True), nn.Linear(8, 1).to(device)
    slow, fast = torch.optim.SGD(table.parameters(), lr=0.1), torch.optim.Adam(top.parameters())
    for _ in range(12):
        ids = torch.randint(0, 1000, (16, 5))
        loss = top(table(ids).to(device)).square().mean()
        slow.zero_grad()
        fast.zero_grad()
        loss.backward()
        slow.step()
        fast.step()
