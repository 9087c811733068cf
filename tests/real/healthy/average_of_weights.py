"""torch-ema after the move: weights are averaged, tried out and put back."""

import torch
from torch import nn
from torch_ema import ExponentialMovingAverage


def run(device):
    torch.manual_seed(0)
    net = nn.Linear(5, 3).to(device)
    average = ExponentialMovingAverage(net.parameters(), decay=0.9)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.ones(4, 5, device=device)).square().sum().backward()
        optimizer.step()
        average.update(net.parameters())
    average.store(net.parameters())
    average.copy_to(net.parameters())
    averaged = net(torch.ones(1, 5, device=device)).detach()
    average.restore(net.parameters())
    return averaged, net.weight
