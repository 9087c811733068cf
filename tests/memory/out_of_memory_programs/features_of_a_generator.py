"""A loss by the features of a fixed model: the gradient of the generator runs through it."""

import torch
from torch import nn


def run(device: str) -> None:
    torch.manual_seed(0)
    features = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU()).to(device)
    generator = nn.Linear(16, 64).to(device)
    adam = torch.optim.Adam(generator.parameters())
    for _ in range(2):
        fake = generator(torch.randn(2048, 16, device=device))
        loss = features(fake).pow(2).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
