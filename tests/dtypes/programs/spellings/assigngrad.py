# numpy-boundary, sigma, float64
import torch
from torch import nn
import numpy as np


class Den(nn.Module):
    def __init__(self):
        super().__init__()
        self.t = nn.Linear(1, 4)
        self.x = nn.Linear(4, 4)
    def forward(self, x, sigma):
        return self.x(x + self.t(sigma[:, None].log()))  # failed


def run(device):
    torch.manual_seed(0)
    net = Den()
    x = torch.randn(3, 4)
    sigma = torch.tensor(np.random.default_rng(0).lognormal(size=len(x)))  # born
    return net(x + sigma[:, None].float(), sigma).square().mean().item()
