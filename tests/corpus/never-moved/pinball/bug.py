"""A tensor as a default argument, made when the file is imported."""

import torch
from torch import nn


def pinball(pred, true, quantiles=torch.tensor([0.1, 0.5, 0.9])):
    error = true[:, None] - pred
    return torch.maximum(quantiles * error, (quantiles - 1) * error).mean()


def run(device):
    net = nn.Linear(4, 3).to(device)
    x = torch.randn(6, 4).to(device); y = torch.randn(6).to(device)
    pinball(net(x), y).backward()
