"""All steps of a rollout are kept, as the loss is of all: the rollout is too long, and nothing leaks."""

import torch
from torch import nn


def run(device: str) -> None:
    model = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 256)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(3):
        state = torch.randn(512, 256, device=device)
        states = []
        for _ in range(40):
            state = model(state)
            states.append(state)
        loss = torch.stack(states).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
