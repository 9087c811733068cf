"""Gradients of a few tasks are kept for their mean, parameters of before for a penalty that each step computes."""

import torch
from torch import nn


def run(device: str) -> None:
    net = nn.Sequential(nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 512)).to(device)
    anchors: list[list[torch.Tensor]] = []
    fisher: list[list[torch.Tensor]] = []
    for _ in range(6):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            loss = net(torch.randn(16, 512, device=device)).square().mean()
            for anchor in anchors:
                loss = loss + sum(((p - old) ** 2).sum() for p, old in zip(net.parameters(), anchor, strict=True))
            loss.backward()
            optimizer.step()
        anchors.append([p.detach().clone() for p in net.parameters()])
        fisher.append([p.grad.detach() ** 2 for p in net.parameters() if p.grad is not None])
    mean = [torch.stack(each).mean(0) for each in zip(*fisher, strict=True)]
    print(len(mean))
