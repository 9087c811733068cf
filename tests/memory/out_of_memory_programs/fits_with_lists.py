"""Healthy: losses and predictions are kept, without their graphs or after their backward pass."""

import torch
from torch import nn


def run(device: str) -> None:
    net = nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 64)).to(device)
    optimizer = torch.optim.Adam(net.parameters())
    losses, shown = [], []
    for _ in range(20):
        batch = torch.randn(512, 64, device=device)
        out = net(batch)
        loss = (out - batch).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
        shown.append(out.detach().mean(0))
    print(len(losses), len(shown))
