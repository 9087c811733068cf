# not-registered, model.1.basis, float32
import torch
from torch import nn


class Rotate(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(d))
        self.basis = torch.linalg.qr(torch.randn(d, d))[0]  # born
    def forward(self, x):
        return torch.einsum("ij,bj->bi", self.basis, x) * self.scale  # failed


def run(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), Rotate(4)).bfloat16()
    return model(torch.randn(2, 3, dtype=torch.bfloat16)).float().sum().item()
