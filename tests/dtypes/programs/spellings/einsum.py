# created-without-dtype, self.table(x.size(1)), float32
import torch
from torch import nn


class Rel(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.d = d
        self.q = nn.Linear(d, d)
    def table(self, n):
        d = self.d
        inv = 1.0 / 10 ** (torch.arange(0, d, 2) / d)  # born
        angle = torch.arange(n)[:, None] * inv
        return torch.cat([angle.sin(), angle.cos()], -1)
    def forward(self, x):
        q = self.q(x)
        return torch.einsum("bnd,md->bnm", q, self.table(x.size(1)))  # failed


def run(device):
    torch.manual_seed(0)
    m = Rel(4).to(torch.bfloat16)
    return m(torch.randn(2, 3, 4).to(torch.bfloat16)).float().sum().item()
