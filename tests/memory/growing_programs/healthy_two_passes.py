"""A critic runs backward in each step and keeps the graph that the policy's losses need at the end of the episode."""

import torch
from torch import nn


def run(device: str) -> None:
    body = nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 64)).to(device)
    critic, policy = nn.Linear(64, 1).to(device), nn.Linear(64, 8).to(device)
    optimizer = torch.optim.SGD(nn.ModuleList([body, critic, policy]).parameters(), lr=0.01)
    for _ in range(2):
        chosen = []
        for _ in range(20):
            state = torch.randn(128, 64, device=device)
            features = body(state)
            critic(features).square().mean().backward(retain_graph=True)
            chosen.append(policy(features).log_softmax(-1)[:, 0].mean())
        torch.stack(chosen).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
