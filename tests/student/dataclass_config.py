from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class Config:
    device: str = "cpu"
    mean: torch.Tensor = field(default_factory=lambda: torch.tensor([0.5, 0.4, 0.3]).view(3, 1, 1))
    std: torch.Tensor = field(default_factory=lambda: torch.tensor([0.2, 0.2, 0.3]).view(3, 1, 1))
    lr: float = 0.01


def normalize(images, cfg):
    return (images - cfg.mean) / cfg.std


def run(device):
    cfg = Config(device=device)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 2)).to(cfg.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=cfg.lr)
    for _ in range(2):
        images = torch.rand(2, 3, 8, 8).to(cfg.device)
        loss = model(normalize(images, cfg)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
