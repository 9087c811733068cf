"""A custom function makes a mask on the CPU, so the backward pass fails."""

import torch
from torch import nn


class Drop(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, p):
        ctx.keep = torch.rand(x.shape[-1]) > p
        return x * 1.0
    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.keep, None


def run(device):
    net = nn.Linear(4, 4).to(device)
    out = Drop.apply(net(torch.randn(2, 4, device=device)), 0.5)
    out.sum().backward()
