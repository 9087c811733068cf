"""Gradients are clipped by hand, one number for each parameter; a number of the loss is sent in each step."""

import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    norms = []
    for x in torch.rand(14, 16, 8, device=device):
        scale = torch.tensor(0.5).to(device)  # 2
        loss = net(x).square().mean() * scale
        optimizer.zero_grad()
        loss.backward()
        total = 0.0
        for parameter in net.parameters():
            total += parameter.grad.norm().item() ** 2  # 1
            #1> total += parameter.grad.norm().detach() ** 2
        norms.append(total**0.5)
        optimizer.step()
    return [float(each) for each in norms], net[0].weight.tolist()
