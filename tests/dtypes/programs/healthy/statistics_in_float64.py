"""Float64 where sums are long and solutions are exact, float32 where the model computes, whole numbers for indexes."""
import numpy as np
import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    table = np.random.default_rng(0).normal(size=(32, 4))
    mean = torch.from_numpy(table).mean(0)
    spread = torch.from_numpy(table).std(0)
    x = ((torch.from_numpy(table) - mean) / spread).float()
    weights = torch.linalg.lstsq(x.double(), x.double().sum(1, keepdim=True)).solution
    net = nn.Linear(4, 4)
    scores = net(x)
    best = scores.argmax(1)
    counts = torch.zeros(4, dtype=torch.long).scatter_add_(0, best, torch.ones_like(best))
    total = torch.zeros((), dtype=torch.float64)
    for row in scores.detach():
        total += row.sum()
    return (counts.float() / 32).sum().item() + total.item() + weights.sum().item()
