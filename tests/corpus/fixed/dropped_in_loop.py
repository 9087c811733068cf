"""A loop over a batch drops what .to() returns."""

import torch
from torch import nn


def run(device):
    net = nn.Linear(3, 1).to(device)
    batch = {"x": torch.randn(4, 3), "y": torch.randn(4, 1)}
    batch["x"] = batch["x"].to(device)
    batch["y"] = batch["y"].to(device)
    for value in batch.values():
        value.to(device)
    net(batch["x"])
