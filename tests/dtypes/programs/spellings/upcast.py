# wrong-dtype, h, float32
import torch
import torch.nn.functional as F
from torch import nn


class RMS(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
    def forward(self, x):
        hidden = x.float()
        variance = hidden.pow(2).mean(-1, keepdim=True)
        hidden = hidden * torch.rsqrt(variance + 1e-6)
        return self.weight * hidden  # born


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.up, self.down = RMS(d), nn.Linear(d, 2 * d), nn.Linear(2 * d, d)
    def forward(self, x):
        h = self.norm(x)
        return x + self.down(F.silu(self.up(h)))  # failed


def run(device):
    torch.manual_seed(0)
    model = nn.Sequential(Block(6), Block(6)).to(torch.bfloat16)
    x = torch.randn(3, 6).to(torch.bfloat16)
    return model(x).float().square().mean().item()
