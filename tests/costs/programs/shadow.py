"""A shadow of the weights follows by a decay that the device computes, and its distance is written down."""

import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    net, shadow = nn.Linear(5, 5).to(device), nn.Linear(5, 5).to(device)
    shadow.load_state_dict(net.state_dict())
    opt = torch.optim.SGD(net.parameters(), lr=0.2)
    steps, apart = torch.zeros((), device=device), 0.0
    for x in torch.rand(22, 12, 5, device=device):
        opt.zero_grad()
        net(x).sub(1).square().mean().backward()
        opt.step()
        steps += 1
        with torch.no_grad():
            keep = torch.exp(-1 / steps)
            for slow, fast in zip(shadow.parameters(), net.parameters()):
                rate = (1 - keep).item()  # 1
                #1> rate = 1 - keep
                slow.add_(rate * (fast - slow))
            apart += (shadow.weight - net.weight).norm().item()  # 2
    return apart, shadow.weight.tolist()
