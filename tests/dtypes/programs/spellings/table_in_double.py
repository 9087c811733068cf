# wrong-dtype, rope.freqs, float64
# untraced: never-cast
import torch
from torch import nn


class Rope(nn.Module):
    def __init__(self, dim):
        super().__init__()
        inv = 1.0 / 100 ** (torch.arange(0, dim, dtype=torch.float64) / dim)  # born
        self.freqs = torch.outer(torch.arange(5).double(), inv).cos()  # born

    def forward(self, q):
        return torch.einsum("btd,td->bt", q, self.freqs[: q.shape[1]])  # failed


def run(device):
    proj = nn.Linear(4, 4)
    rope = Rope(4)
    return rope(proj(torch.ones(2, 3, 4))).sum().item()
