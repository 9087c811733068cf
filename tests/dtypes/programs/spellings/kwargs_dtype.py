# wrong-dtype, temb, float32
import torch
from torch import nn


class Time(nn.Module):
    def __init__(self, d, **kw):
        super().__init__()
        self.d = d
        self.up = nn.Linear(d, 2 * d, **kw)
    def embed(self, t):
        freqs = torch.exp(-torch.arange(self.d, dtype=torch.float32))
        return torch.sin(t.to(dtype=torch.float32)[:, None] * freqs)  # born
    def forward(self, t):
        temb = self.embed(t)
        return self.up(temb)  # failed


def run(device):
    torch.manual_seed(0)
    settings = {"dtype": torch.bfloat16}
    net = Time(4, **settings)
    return net(torch.tensor([3, 7])).float().sum().item()
