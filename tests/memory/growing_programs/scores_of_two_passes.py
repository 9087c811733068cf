"""Two heads run backward one after the other through a body that both need; what the second gave is kept."""

from typing import NamedTuple

import torch
from torch import nn


class Scores(NamedTuple):
    depth: torch.Tensor
    edges: torch.Tensor


class Trainer:
    def __init__(self, device: str) -> None:
        self.body = nn.Sequential(nn.Linear(48, 384), nn.SiLU(), nn.Linear(384, 384), nn.SiLU()).to(device)
        self.depth, self.edges = (nn.Linear(384, 24).to(device) for _ in range(2))
        parts = nn.ModuleList([self.body, self.depth, self.edges])
        self.sgd = torch.optim.SGD(parts.parameters(), lr=0.05)
        self.shown: list[Scores] = []

    def step(self, batch: torch.Tensor) -> Scores:
        features = self.body(batch)
        scores = Scores(self.depth(features).square().mean(), self.edges(features).abs().mean())
        self.sgd.zero_grad()
        scores.depth.backward(retain_graph=True)
        scores.edges.backward(retain_graph=True)
        self.sgd.step()
        return scores


def run(device: str) -> None:
    trainer = Trainer(device)
    for _ in range(30):
        scores = trainer.step(torch.randn(192, 48, device=device))
        trainer.shown.append(scores)
