"""Models of several widths, the widest first, are trained one after the other; each is alive while the next is made."""

import torch
from torch import nn


def build(width: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(512, width), nn.ReLU(), nn.Linear(width, 512))


def run(device: str) -> None:
    scores = {}
    for width in (4096, 3072, 2048):
        net = build(width).to(device)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, foreach=False)
        for _ in range(2):
            optimizer.zero_grad()
            loss = net(torch.randn(8, 512, device=device)).square().mean()
            loss.backward()
            optimizer.step()
        scores[width] = loss.item()
    print(scores)
