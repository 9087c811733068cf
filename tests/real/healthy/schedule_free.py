"""schedulefree: training and evaluation in turn."""

import torch
from schedulefree import AdamWScheduleFree
from torch import nn


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).to(device)
    optimizer = AdamWScheduleFree(net.parameters(), lr=0.05, warmup_steps=2)
    x = torch.rand(16, 4).to(device)
    for _ in range(3):
        optimizer.train()
        net.train()
        optimizer.zero_grad()
        net(x).square().mean().backward()
        optimizer.step()
        optimizer.eval()
        net.eval()
        with torch.no_grad():
            seen = net(x)
    return seen, net[0].weight
