# wrong-dtype, share, float32
import torch
from torch import nn


def soften(module, args, output):
    weights = torch.softmax(output.float(), -1)  # born
    return weights


class Router(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.gate = nn.Linear(6, n, bias=False)
        self.experts = nn.Parameter(torch.randn(n, 6))
        self.gate.register_forward_hook(soften)

    def forward(self, x):
        share = self.gate(x)
        return share @ self.experts  # failed


def run(device):
    router = Router(3).bfloat16()
    return router(torch.ones(2, 6).bfloat16()).float().sum().item()
