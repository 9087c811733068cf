# autocast-off, x, bfloat16
import torch
from torch import nn


class Cluster(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(6, 4)
        self.centers = nn.Parameter(torch.randn(3, 4))
    def score(self, x):
        with torch.autocast("cpu", enabled=False):
            return torch.einsum("bd,kd->bk", x, self.centers)  # failed
    def forward(self, x):
        x = self.proj(x)  # born
        return self.score(x)


def run(device):
    torch.manual_seed(0)
    net = Cluster()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = net(torch.randn(5, 6))
    return out.float().square().mean().item()
