# target-dtype, codes, float16
import torch
from torch import nn


def quantise(x, levels):
    lo, hi = x.min(), x.max()
    return ((x - lo) / (hi - lo) * (levels - 1)).round().half()  # born


class Codebook(nn.Module):
    def __init__(self, levels):
        super().__init__()
        self.vectors = nn.Parameter(torch.randn(levels, 3))
    def forward(self, codes):
        return self.vectors[codes]  # failed


def run(device):
    torch.manual_seed(0)
    codes = quantise(torch.randn(7), 8)
    return Codebook(8)(codes).sum().item()
