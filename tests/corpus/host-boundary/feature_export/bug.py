"""Export features as numpy arrays."""
import numpy as np
import torch
from torch import nn


class Exporter:
    def __init__(self, net):
        self.net = net

    @torch.no_grad()
    def features(self, batch):
        pooled = self.net(batch)
        return pooled / pooled.norm(dim=-1, keepdim=True)

    def export(self, batches):
        return np.vstack([np.asarray(self.features(b)) for b in batches])


def run(device):
    torch.manual_seed(0)
    exporter = Exporter(nn.Linear(4, 3).to(device))
    table = exporter.export([torch.randn(2, 4, device=device) for _ in range(2)])
    return float(table.sum())
