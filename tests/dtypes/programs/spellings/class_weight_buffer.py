# numpy-boundary, criterion.weight, float64
import torch
import torch.nn.functional as F
from torch import nn
import numpy as np


class Weighted(nn.Module):
    def __init__(self, counts):
        super().__init__()
        self.register_buffer("weight", torch.tensor(1.0 / np.asarray(counts)))  # born
    def forward(self, logits, target):
        return F.cross_entropy(logits, target, weight=self.weight)  # failed


def run(device):
    torch.manual_seed(0)
    criterion = Weighted([3, 1, 2])
    net = nn.Linear(4, 3)
    return criterion(net(torch.randn(6, 4)), torch.tensor([0, 1, 2, 0, 1, 2])).item()
