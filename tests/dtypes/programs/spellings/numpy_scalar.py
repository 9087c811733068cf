# numpy-boundary, x, float64
import torch
from torch import nn
import numpy as np


def normalise(raw):
    return torch.tensor((raw - raw.mean(0)) / raw.std(0))  # born


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(3, 4), nn.Linear(4, 1)])
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)  # failed
        return x


def run(device):
    torch.manual_seed(0)
    raw = np.random.default_rng(0).normal(size=(6, 3))
    return Regressor()(normalise(raw)).sum().item()
