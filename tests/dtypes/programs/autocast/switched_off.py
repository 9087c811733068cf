import torch
from torch import nn


class Pooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Linear(4, 6)
        self.weights = nn.Parameter(torch.ones(6, 6))

    def forward(self, x):
        hidden = self.embed(x)
        with torch.amp.autocast(device_type=x.device.type, enabled=False):
            mixed = torch.matmul(hidden, self.weights)
        return mixed.sum()


def run(device):
    torch.manual_seed(0)
    pooled = Pooled()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        total = pooled(torch.randn(3, 4))
    return total.item()
