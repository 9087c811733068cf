"""Log-probabilities of a rollout keep their graphs until its update, which another function makes."""

import torch
from torch import nn


class Agent:
    def __init__(self, device: str) -> None:
        self.policy = nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 8)).to(device)
        self.optimizer = torch.optim.SGD(self.policy.parameters(), lr=0.01)
        self.kept: list[torch.Tensor] = []

    def act(self, state: torch.Tensor) -> None:
        self.kept.append(self.policy(state).log_softmax(-1)[:, 0])


def update(agent: Agent) -> None:
    rewards = torch.cat(agent.kept)
    agent.optimizer.zero_grad()
    (-rewards).mean().backward()
    agent.optimizer.step()
    agent.kept = []


def run(device: str) -> None:
    agent = Agent(device)
    for _ in range(2):
        for _ in range(20):
            agent.act(torch.randn(256, 64, device=device))
        update(agent)
