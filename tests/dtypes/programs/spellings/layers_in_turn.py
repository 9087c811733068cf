# wrong-dtype, rows, float32
import torch
from torch import nn


class Widen(nn.Module):
    def forward(self, h):
        return h.float()  # born


def run(device):
    steps = [nn.Linear(3, 3).half(), Widen(), nn.Linear(3, 1).half()]
    rows = torch.rand(2, 3).half()
    for step in steps:
        rows = step(rows)  # failed
    return rows.float().sum().item()
