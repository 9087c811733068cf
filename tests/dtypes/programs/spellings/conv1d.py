# numpy-boundary, signal, float64
import torch
from torch import nn
import numpy as np


class Filter(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 3, 5, bias=False)
    def forward(self, x):
        return self.conv(x).amax(-1)  # failed


def run(device):
    torch.manual_seed(0)
    wave = np.sin(np.linspace(0, 6, 40))
    signal = torch.as_tensor(wave).view(1, 1, -1)  # born
    return Filter()(signal).sum().item()
