# numpy-boundary, net.0.kernel, float64
import numpy as np
import torch
from torch import nn
import torch.nn.functional as F


class Smooth(nn.Module):
    def __init__(self, width):
        super().__init__()
        window = np.hanning(width)
        self.kernel = torch.as_tensor(window / window.sum()).view(1, 1, -1)  # born

    def forward(self, wave):
        return F.conv1d(wave.unsqueeze(1), self.kernel, padding="same").squeeze(1)  # failed


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(Smooth(5), nn.Linear(12, 2))
    return net(torch.randn(3, 12)).sum().item()
