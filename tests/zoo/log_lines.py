"""The loss is read and written every tenth step."""

import torch
from torch import nn


def run(device):
    net = nn.Linear(4, 1).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    history = []
    for step in range(120):
        loss = net(torch.randn(8, 4, device=device)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            print(f"{step} {loss.item():.3f}")
            history.append(loss.item())
