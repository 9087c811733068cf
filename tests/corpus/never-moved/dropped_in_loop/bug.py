"""A loop over a batch does not keep the results of .to()."""

import torch
from torch import nn


def run(device):
    net = nn.Linear(3, 1).to(device)
    batch = {"x": torch.randn(4, 3), "y": torch.randn(4, 1)}
    for value in batch.values():
        value.to(device)
    net(batch["x"])
