# wrong-dtype, w, float32
# untraced: never-cast
import torch
from torch import nn


class ScaledMatmul(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        w = weight.float()  # born
        ctx.save_for_backward(x, w)
        return x @ weight.t()
    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad @ w, grad.t() @ x  # failed


def run(device):
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(3, 4, dtype=torch.bfloat16))
    x = torch.randn(2, 4, dtype=torch.bfloat16, requires_grad=True)
    out = ScaledMatmul.apply(x, weight)
    out.sum().backward()
    return x.grad.float().sum().item()
