"""torch-ema 0.2 keeps copies of the parameters where they were; 0.3 has a method to move them."""

import torch
from torch import nn
from torch_ema import ExponentialMovingAverage


def run(device):
    torch.manual_seed(0)
    net = nn.Linear(5, 3)
    average = ExponentialMovingAverage(net.parameters(), decay=0.9)
    net.to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        net(torch.rand(4, 5, device=device)).sum().backward()
        optimizer.step()
        average.update(net.parameters())
