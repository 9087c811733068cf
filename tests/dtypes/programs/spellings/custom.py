# created-without-dtype, ramp, float32
import torch
from torch import nn


class Damp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, grad):
        ramp = torch.linspace(0, 1, grad.size(-1))  # born
        return grad @ torch.diag(ramp)  # failed


def run(device):
    torch.manual_seed(0)
    lin = nn.Linear(4, 3).double()
    out = Damp.apply(lin(torch.randn(5, 4).double()))
    out.square().mean().backward()
    return lin.weight.grad.abs().sum().item()
