"""Q-learning: the environment is Python's, its experience goes to the device as one batch, and a copy follows slowly."""

import copy
import random
from collections import deque

import torch
from torch import nn


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
    slow = copy.deepcopy(q).requires_grad_(False)
    optimizer = torch.optim.Adam(q.parameters())
    memory, world, state = deque(maxlen=100), Corridor(), [0.0, 1.0]
    for step in range(24):
        if random.random() < 0.5:
            action = random.randrange(2)
        else:
            with torch.no_grad():
                action = q(torch.tensor([state], device=device)).argmax(1).item()
        after, reward = world.step(action)
        memory.append((state, action, reward, after))
        state = after
        if len(memory) < 8:
            continue
        states, actions, rewards, afters = (torch.tensor(part) for part in zip(*random.sample(memory, 8)))
        states, actions, rewards, afters = (part.to(device) for part in (states, actions, rewards, afters))
        target = rewards + 0.9 * slow(afters).amax(1)
        loss = nn.functional.smooth_l1_loss(q(states).gather(1, actions[:, None])[:, 0], target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            torch._foreach_lerp_(list(slow.parameters()), list(q.parameters()), 0.01)
    return len(memory)
