"""Q-learning: each reward goes to the device on its own, and each priority of a batch comes back singly."""

import random

import torch
from torch import nn
from torch.nn import functional as F


class Corridor:
    def __init__(self):
        self.at = 0

    def step(self, action):
        self.at = max(0, min(9, self.at + (1 if action else -1)))
        return [self.at / 9, 1.0], float(self.at == 9)


def run(device):
    torch.manual_seed(0)
    random.seed(0)
    q = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2)).to(device)
    optimizer = torch.optim.SGD(q.parameters(), lr=0.05)
    world, state = Corridor(), torch.zeros(1, 2, device=device)
    memory, priorities = [], {}
    for step in range(20):
        action = q(state).argmax(1).item() if random.random() > 0.3 else random.randrange(2)
        observed, reward = world.step(action)
        after = torch.tensor([observed], device=device)
        reward = torch.tensor([reward], device=device)  # 2
        #2> reward = torch.full((1,), reward, device=device)
        memory.append((state, action, reward, after))
        state = after
        picked = [len(memory) - 1 - k for k in range(min(4, len(memory)))]
        states, actions, rewards, afters = zip(*(memory[k] for k in picked))
        target = torch.cat(rewards) + 0.9 * q(torch.cat(afters)).max(1).values.detach()
        values = q(torch.cat(states))[range(len(picked)), list(actions)]
        errors = (target - values).abs()
        loss = F.smooth_l1_loss(values, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        #1> errors = errors.tolist()
        for k, error in zip(picked, errors):
            priorities[k] = error.item() + 0.01  # 1
            #1> priorities[k] = error + 0.01
    return priorities, q[0].weight.tolist()
