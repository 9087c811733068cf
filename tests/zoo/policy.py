"""Reinforcement learning: the environment is numpy, so each action must come to the host."""

import torch
import torch.nn.functional as F
from torch import nn


import numpy as np


class World:
    def __init__(self):
        self.state = np.zeros(3, dtype=np.float32)

    def step(self, action):
        self.state = np.tanh(self.state + (action - 0.5)).astype(np.float32)
        return self.state, float(self.state.sum())


def run(device):
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 2)).to(device)
    opt = torch.optim.Adam(policy.parameters())
    for _ in range(3):
        world, state, logs, rewards = World(), np.zeros(3, dtype=np.float32), [], []
        for _ in range(12):
            choice = torch.distributions.Categorical(logits=policy(torch.from_numpy(state).to(device)))
            action = choice.sample()
            logs.append(choice.log_prob(action))
            state, reward = world.step(action.item())
            rewards.append(reward)
        loss = -(torch.stack(logs) * torch.tensor(rewards, device=device)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
