"""Augmentation on the host, before the batch is sent; random decisions are Python's."""

import torch
import torch.nn.functional as F
from torch import nn


import random


def augment(images):
    if random.random() < 0.5:
        images = images.flip(-1)
    return (images + 0.01 * torch.randn_like(images)).clamp(0, 1)


def run(device):
    torch.manual_seed(0)
    random.seed(0)
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(72, 2)).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(12):
        x, y = augment(torch.rand(4, 1, 8, 8)), torch.randint(0, 2, (4,))
        loss = F.cross_entropy(net(x.to(device)), y.to(device))
        opt.zero_grad()
        loss.backward()
        opt.step()
