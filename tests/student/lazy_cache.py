import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.inv_freq = 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim))
        self.cached = None

    def forward(self, x):
        n = x.shape[1]
        if self.cached is None or self.cached[0].shape[0] < n:
            t = torch.arange(n).float()
            freqs = torch.outer(t, self.inv_freq)
            emb = torch.cat([freqs, freqs], -1)
            self.cached = (emb.cos(), emb.sin())
        cos, sin = self.cached
        a, b = x.chunk(2, -1)
        return x * cos[:n] + torch.cat([-b, a], -1) * sin[:n]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = Rotary(8)
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        return self.linear(self.rotary(x))


def run(device):
    block = Block().to(device)
    for n in (4, 6):
        block(torch.randn(2, n, 8, device=device))
