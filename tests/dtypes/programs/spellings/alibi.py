# not-registered, model.attn.alibi, float32
import torch
from torch import nn


class Attn(nn.Module):
    def __init__(self, width, n):
        super().__init__()
        self.q, self.k = nn.Linear(width, width), nn.Linear(width, width)
        distance = torch.arange(n)[None] - torch.arange(n)[:, None]
        self.alibi = (-0.5 * distance.abs())[None]  # born
    def forward(self, x):
        q, k = self.q(x), self.k(x)
        scores = torch.baddbmm(self.alibi, q, k.transpose(1, 2))  # failed
        return scores.softmax(-1) @ x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = Attn(8, 5)
    def forward(self, x):
        return self.attn(x)


def run(device):
    torch.manual_seed(0)
    model = Net().to(device)
    model = model.bfloat16()
    x = torch.randn(2, 5, 8, device=device).bfloat16()
    return model(x).float().square().mean().item()
