# not-registered, net.mixers[0].weight, float32
import torch
from torch import nn


class Mixers(nn.Module):
    def __init__(self, width, n):
        super().__init__()
        self.stem = nn.Linear(3, width)
        self.mixers = [nn.Linear(width, width) for _ in range(n)]  # born
    def forward(self, x):
        x = self.stem(x)
        return sum(mix(x) for mix in self.mixers)  # failed


def run(device):
    torch.manual_seed(0)
    net = Mixers(4, 2).to(torch.float64)
    x = torch.randn(5, 3, dtype=torch.float64)
    return net(x).mean().item()
