"""Whole batches are moved, predictions and labels gathered on the host."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@torch.no_grad()
def run(device):
    net = nn.Linear(4, 3).to(device).eval()
    data = DataLoader(TensorDataset(torch.randn(96, 4), torch.randint(0, 3, (96,))), batch_size=8)
    said, true = [], []
    for x, y in data:
        x, y = x.to(device), y.to(device)
        said.append(net(x).argmax(1).cpu())
        true.append(y.cpu())
    (torch.cat(said) == torch.cat(true)).float().mean()
