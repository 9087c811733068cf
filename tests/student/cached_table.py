"""A table cached before the move: a sanity forward fills it."""

import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.cached = None
        self.proj = nn.Linear(dim, dim)

    def table(self, n):
        if self.cached is None or len(self.cached) < n:
            self.cached = torch.arange(n).float()[:, None].cos()
        return self.cached[:n]

    def forward(self, x):
        return self.proj(x) * self.table(x.size(1))


def run(device):
    torch.manual_seed(0)
    model = Rotary(4)
    model(torch.ones(1, 6, 4))
    model.to(device)
    opt = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(3):
        loss = model(torch.randn(2, 5, 4).to(device)).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()
