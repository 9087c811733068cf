import random
from collections import deque

import torch
from torch import nn


class Memory:
    def __init__(self, size):
        self.items = deque(maxlen=size)

    def push(self, *item):
        self.items.append(item)

    def sample(self, n):
        chosen = random.sample(list(self.items), n)
        s, a, r, s2 = zip(*chosen)
        return torch.stack(s), torch.tensor(a), torch.tensor(r), torch.stack(s2)


def run(device):
    random.seed(0)
    q = nn.Linear(4, 2).to(device)
    target = nn.Linear(4, 2)
    target.load_state_dict(q.state_dict())
    memory = Memory(50)
    for i in range(10):
        memory.push(torch.randn(4), i % 2, float(i), torch.randn(4))
    optimizer = torch.optim.Adam(q.parameters())
    for _ in range(3):
        states, actions, rewards, following = memory.sample(5)
        value = q(states.to(device)).gather(1, actions.to(device).unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best = target(following.to(device)).max(1).values
        loss = nn.functional.smooth_l1_loss(value, rewards + 0.9 * best)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
