"""Attention with angles cached by length; the first call happens before the move."""
import torch
import torch.nn as nn


class Angles(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.cached = {}

    def forward(self, x):
        n = x.size(1)
        if n not in self.cached:
            steps = torch.arange(n, device=x.device).unsqueeze(1)
            rates = torch.arange(self.dim, device=x.device)
            self.cached[n] = torch.cos(steps / (1.0 + rates))
        return x * self.cached[n]


class Encoder(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.angles = Angles(dim)
        self.mix = nn.Linear(dim, dim)

    def forward(self, x):
        return self.mix(self.angles(x))


def run(device):
    torch.manual_seed(0)
    encoder = Encoder()
    width = encoder(torch.zeros(1, 5, 6)).size(-1)
    encoder = encoder.to(device)
    return encoder(torch.randn(2, 5, width).to(device)).std().item()
