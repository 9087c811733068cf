# numpy-boundary, returns, float64
import torch
from torch import nn
import numpy as np


def discount(rewards, gamma=0.9):
    out, total = np.zeros(len(rewards)), 0.0
    for i, r in enumerate(reversed(rewards)):
        total = r + gamma * total
        out[i] = total
    return torch.as_tensor(out[::-1].copy())  # born


def run(device):
    torch.manual_seed(0)
    critic = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    obs = torch.randn(3, 4)
    returns = discount([1.0, 0.0, 2.0])
    criterion = nn.HuberLoss()
    loss = criterion(critic(obs).squeeze(-1), returns)  # failed
    loss.backward()
    return loss.item()
