import torch
from torch import nn


class Quantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, levels):
        ctx.save_for_backward(x)
        grid = torch.linspace(-1, 1, levels)
        index = (x.unsqueeze(-1) - grid).abs().argmin(-1)
        return grid[index]

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        limit = torch.tensor([1.0])
        return grad * (x.abs() <= limit), None


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 1)

    def forward(self, x):
        return self.b(Quantize.apply(torch.tanh(self.a(x)), 9))


def run(device):
    net = Net().to(device)
    x = torch.randn(5, 4, device=device)
    net(x).sum().backward()
    return net.a.weight.grad
