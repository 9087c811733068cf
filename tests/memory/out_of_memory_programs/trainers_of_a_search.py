"""A search over rates makes a trainer for each; the last one holds its model until the next is there."""

import torch
from torch import nn


class Trainer:
    def __init__(self, rate: float, device: str) -> None:
        self.device = device
        self.model = nn.Sequential(nn.Linear(1024, 1024), nn.Tanh(), nn.Linear(1024, 4096), nn.Linear(4096, 1024)).to(
            device
        )
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=rate, momentum=0.9, foreach=False)

    def fit(self) -> float:
        for _ in range(2):
            self.optimizer.zero_grad()
            loss = self.model(torch.randn(8, 1024, device=self.device)).square().mean()
            loss.backward()
            self.optimizer.step()
        return float(loss.item())


def run(device: str) -> None:
    rates = [0.1, 0.01, 0.001]
    best = float("inf")
    while rates:
        trainer = Trainer(rates.pop(), device)
        score = trainer.fit()
        if score < best:
            best = score
    print(best > 0)
