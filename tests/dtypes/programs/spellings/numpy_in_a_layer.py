# target-dtype, y, bfloat16
import torch
from torch import nn


class Probe(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        self.rows = []

    def forward(self, x):
        y = self.inner(x)  # born
        self.rows.append(y.detach().numpy())  # failed
        return y


def run(device):
    torch.manual_seed(0)
    model = nn.Sequential(Probe(nn.Linear(3, 4)), nn.Linear(4, 2)).to(torch.bfloat16)
    return model(torch.ones(5, 3, dtype=torch.bfloat16)).sum().item()
