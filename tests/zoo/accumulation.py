"""Gradients of four batches for each step, clipped."""

import torch
import torch.nn.functional as F
from torch import nn


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)
    opt = torch.optim.Adam(net.parameters())
    for step in range(24):
        loss = net(torch.randn(4, 3).to(device)).square().mean() / 4
        loss.backward()
        if step % 4 == 3:
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            opt.zero_grad()
