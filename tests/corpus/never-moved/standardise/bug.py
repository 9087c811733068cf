"""Features standardised by statistics kept in a dataclass."""
from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class Stats:
    mean: torch.Tensor
    std: torch.Tensor

    @classmethod
    def measure(cls, rows):
        return cls(rows.mean(0), rows.std(0))

    def apply(self, x):
        return (x - self.mean) / self.std


def run(device):
    torch.manual_seed(0)
    rows = torch.randn(32, 4) * 3 + 1
    stats = Stats.measure(rows)
    net = nn.Linear(4, 2).to(device)
    out = net(stats.apply(rows[:8].to(device)))
    return out.sum().item()
