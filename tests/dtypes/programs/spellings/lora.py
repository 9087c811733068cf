# attached-after-cast, net.up.a.weight, float32
import torch
from torch import nn


class Low(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base
        self.a = nn.Linear(base.in_features, rank, bias=False)  # born
        self.b = nn.Linear(rank, base.out_features, bias=False)
    def forward(self, x):
        return self.base(x) + self.b(self.a(x))  # failed


def run(device):
    torch.manual_seed(0)
    net = nn.ModuleDict({"up": nn.Linear(6, 12), "down": nn.Linear(12, 6)}).to(device=device, dtype=torch.bfloat16)
    for name, child in list(net.items()):
        net[name] = Low(child)
    x = torch.randn(3, 6, device=device, dtype=torch.bfloat16)
    return net["down"](net["up"](x).relu()).float().square().mean().item()
