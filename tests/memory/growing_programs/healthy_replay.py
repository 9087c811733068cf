"""A buffer of transitions has a bound, and metrics are numbers."""

import collections

import torch
from torch import nn


def run(device: str) -> None:
    policy = nn.Sequential(nn.Linear(256, 512), nn.Tanh(), nn.Linear(512, 256)).to(device)
    optimizer = torch.optim.SGD(policy.parameters(), lr=0.01)
    memory: collections.deque[tuple[torch.Tensor, torch.Tensor]] = collections.deque(maxlen=64)
    losses = []
    state = torch.randn(64, 256, device=device)
    for _ in range(60):
        with torch.no_grad():
            after = policy(state)
        memory.append((state, after))
        before, target = memory[len(memory) // 2]
        loss = (policy(before) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        state = after
