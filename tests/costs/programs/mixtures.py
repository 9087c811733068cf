"""Samples of a mixture: the component is drawn on the device and looked up in a list of tensors."""

import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    net = nn.Linear(2, 2).to(device)
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    heights = torch.rand(50, 50)
    spread, seen = torch.tensor([0.1, 0.5, 1.0], device=device), []
    for x in torch.randn(19, 30, 2, device=device):
        out = net(x)
        energy = (out**2).sum(1) * spread[1] + heights.to(device).mean()  # 2
        loss = energy.mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        seen = seen + [energy.std().item()]  # 1
        #1> seen = seen + [energy.std().detach()]
    #1> seen = torch.stack(seen).tolist()
    return seen
