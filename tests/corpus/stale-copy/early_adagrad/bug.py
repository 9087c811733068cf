"""Adagrad makes its state before the model is moved."""

import torch
from torch import nn


def run(device):
    net = nn.Linear(4, 2)
    opt = torch.optim.Adagrad(net.parameters(), lr=0.1)
    net.to(device)
    for _ in range(2):
        opt.zero_grad()
        net(torch.randn(3, 4, device=device)).sum().backward()
        opt.step()
