# wrong-dtype, probe.head.weight, float64
import torch
from torch import nn


class Probe(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.head = nn.Linear(width, 2)  # born
    def forward(self, x):
        return self.head(x)  # failed


def precise(width):
    torch.set_default_dtype(torch.float64)
    try:
        return Probe(width)
    finally:
        torch.set_default_dtype(torch.float32)


def run(device):
    torch.manual_seed(0)
    body = nn.Linear(3, 5)
    probe = precise(5)
    return probe(body(torch.randn(2, 3))).sum().item()
