"""A steering vector that a forward hook adds stays on the CPU."""

import torch
from torch import nn


def steer(layer, vector, strength):
    def hook(module, args, output):
        return output + strength * vector
    return layer.register_forward_hook(hook)


def run(device):
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(device)
    direction = torch.randn(8)
    steer(net[0], direction, 2.0)
    net(torch.randn(3, 4, device=device))
