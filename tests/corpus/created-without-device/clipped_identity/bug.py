"""A straight-through activation with its own backward."""
import torch
from torch import nn
from torch.autograd import Function


class ClipThrough(Function):
    @staticmethod
    def forward(ctx, x, bound):
        ctx.save_for_backward(x)
        ctx.bound = bound
        return x.clamp(-bound, bound)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        leak = torch.full(x.shape, 0.1)
        return torch.where(x.abs() <= ctx.bound, grad, grad * leak), None


class Quiet(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 7), nn.Linear(7, 1)

    def forward(self, x):
        return self.b(ClipThrough.apply(self.a(x), 0.5))


def run(device):
    torch.manual_seed(0)
    model = Quiet().to(device)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.randn(8, 5, device=device)
    for _ in range(2):
        sgd.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        sgd.step()
    return loss.item()
