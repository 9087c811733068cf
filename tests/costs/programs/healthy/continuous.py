"""An agent of continuous actions: the state goes to the device, the action comes back, as the environment needs."""

import torch
from torch import nn


class Pole:
    def __init__(self, seed):
        self.draw = torch.Generator().manual_seed(seed)
        self.angle, self.speed = 0.1, 0.0

    def seen(self):
        return [self.angle, self.speed]

    def push(self, force):
        self.speed += 0.1 * self.angle + 0.05 * force
        self.angle += 0.1 * self.speed
        return -abs(self.angle)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, state, action):
        return self.q(torch.cat([state, action], 1))


def run(device):
    torch.manual_seed(0)
    actor = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1), nn.Tanh()).to(device)
    critic = Critic().to(device)
    of_actor, of_critic = torch.optim.Adam(actor.parameters()), torch.optim.Adam(critic.parameters())
    pole, history = Pole(0), []
    for step in range(40):
        state = pole.seen()
        with torch.no_grad():
            force = actor(torch.tensor([state], device=device)).item()
        reward = pole.push(force)
        history.append((state, [force], [reward]))
        if len(history) >= 8:
            s, a, r = (torch.tensor(each).to(device) for each in zip(*history[-8:]))
            of_critic.zero_grad()
            (critic(s, a) - r).square().mean().backward()
            of_critic.step()
            of_actor.zero_grad()
            (-critic(s, actor(s)).mean()).backward()
            of_actor.step()
    return [reward[0] for _, _, reward in history]
