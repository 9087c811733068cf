"""Two halves on two devices, activations handed over."""

import torch
import torch.nn.functional as F
from torch import nn


class Halves(nn.Module):
    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = first, second
        self.low = nn.Sequential(nn.Linear(4, 8), nn.ReLU()).to(first)
        self.high = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).to(second)

    def forward(self, x):
        return self.high(self.low(x.to(self.first)).to(self.second))


def run(device, second="cuda:1"):
    torch.manual_seed(0)
    net = Halves(device, second)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(12):
        loss = F.mse_loss(net(torch.randn(4, 4)), torch.randn(4, 1).to(second))
        opt.zero_grad()
        loss.backward()
        opt.step()
