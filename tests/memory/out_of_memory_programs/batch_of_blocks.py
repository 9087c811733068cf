"""A stack of layers in a list of the model; the batch is too large for their activations."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.ModuleList(
            nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)) for _ in range(6)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.inner:
            x = x + layer(x)
        return x


def run(device: str) -> None:
    net = Net().to(device)
    x = torch.randn(1200, 256, device=device)
    net(x).square().mean().backward()
