"""A trainer keeps the checkpoint that it loaded to the device."""

import io

import torch
from torch import nn


class Trainer:
    def __init__(self, file: io.BytesIO, device: str) -> None:
        self.model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512)).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters())
        self.checkpoint = torch.load(file, map_location=device)
        self.model.load_state_dict(self.checkpoint["model"])
        self.optimizer.load_state_dict(self.checkpoint["optimizer"])

    def step(self, x: torch.Tensor) -> None:
        self.model(x).square().mean().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def saved() -> io.BytesIO:
    model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(2, 512)).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    return file


def run(device: str) -> None:
    trainer = Trainer(saved(), device)
    for _ in range(3):
        trainer.step(torch.randn(256, 512, device=device))
