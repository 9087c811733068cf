# wrong-dtype, weights, float32
import torch
from torch import nn


class Attn(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.qkv = nn.Linear(d, 3 * d)
    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        scores = q @ k.mT / q.size(-1) ** 0.5
        weights = scores.softmax(-1, dtype=torch.float32)  # born
        return weights @ v  # failed


def run(device):
    torch.manual_seed(0)
    layer = Attn(6).to(torch.float16)
    x = torch.randn(2, 4, 6, dtype=torch.float16)
    return layer(x).float().square().sum().item()
