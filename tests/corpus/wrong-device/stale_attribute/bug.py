"""A sampler that remembers the device it was built for."""
import torch
from torch import nn


class Sampler(nn.Module):
    def __init__(self, width, device="cpu"):
        super().__init__()
        self.device = torch.device(device)
        self.scale = nn.Parameter(torch.ones(width, device=self.device))

    def noise(self, n):
        return torch.randn(n, len(self.scale), device=self.device)

    def forward(self, centre):
        draw = self.noise(len(centre))
        return centre + draw * self.scale


def run(device):
    torch.manual_seed(0)
    sampler = Sampler(4)
    sampler.to(device)
    out = sampler(torch.zeros(3, 4, device=device))
    return out.std().item()
