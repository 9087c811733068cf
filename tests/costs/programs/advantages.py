"""Advantages go backwards over a rollout: each end of an episode is asked for, and the discounts are sent again."""

import torch
from torch import nn


def advantages(rewards, values, ended):
    kept, last, after = [], torch.zeros((), device=values.device), 0.0
    #1> ended = ended.tolist()
    for at in reversed(range(len(rewards))):
        if ended[at]:  # 1
        #1> if ended[at]:
            last, after = torch.zeros_like(last), 0.0
        last = rewards[at] + 0.99 * after - values[at] + 0.9 * last
        after = values[at]
        kept.append(last)
    return torch.stack(kept[::-1])


def run(device):
    torch.manual_seed(0)
    critic = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1)).to(device)
    opt = torch.optim.Adam(critic.parameters(), lr=1e-2)
    discounts = 0.99 ** torch.arange(12.0)
    for states in torch.randn(10, 12, 4, device=device):
        values = critic(states).squeeze(1)
        rewards, ended = states[:, 0], states[:, 1] > 1
        aim = advantages(rewards, values.detach(), ended)
        loss = ((values - aim).square() * discounts.to(device)).mean()  # 2
        opt.zero_grad()
        loss.backward()
        opt.step()
    return critic[0].weight.tolist()
