# numpy-boundary, loss_of.weight, float64
# untraced: never-cast
import torch
from torch import nn
import numpy as np


def balanced(labels, n):
    counts = np.bincount(labels.numpy(), minlength=n)
    return torch.from_numpy(1 / counts)  # born


def run(device):
    torch.manual_seed(0)
    y = torch.tensor([0, 1, 2, 2, 1, 0, 1])
    loss_of = nn.CrossEntropyLoss(weight=balanced(y, 3))
    logits = nn.Linear(4, 3)(torch.randn(7, 4))
    return loss_of(logits, y).item()  # failed
