"""The weights of every epoch are remembered, where the best would do."""

import torch
from torch import nn


def run(device: str) -> None:
    model = nn.Sequential(*[nn.Linear(512, 512) for _ in range(4)]).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, foreach=False)
    weights: dict[int, dict[str, torch.Tensor]] = {}
    for epoch in range(12):
        optimizer.zero_grad()
        model(torch.randn(64, 512, device=device)).pow(2).mean().backward()
        optimizer.step()
        weights[epoch] = {name: p.detach().clone() for name, p in model.named_parameters()}
