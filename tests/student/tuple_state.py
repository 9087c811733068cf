import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(3, 8)
        self.pi = nn.Linear(8, 2)

    def forward(self, obs, state):
        state = self.cell(obs, state)
        return torch.distributions.Categorical(logits=self.pi(state)), state


class Env:
    def reset(self):
        self.t = 0
        return torch.zeros(3)

    def step(self, action):
        self.t += 1
        return torch.full((3,), float(self.t)), float(action), self.t >= 4


def run(device):
    policy = Policy().to(device)
    env = Env()
    obs = env.reset()
    state = torch.zeros(1, 8)
    log_probs, rewards, done = [], [], False
    while not done:
        dist, state = policy(obs.unsqueeze(0), state)
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        obs, reward, done = env.step(action.item())
        rewards.append(reward)
    returns = torch.tensor(rewards).flip(0).cumsum(0).flip(0)
    loss = -(torch.cat(log_probs) * returns).sum()
    loss.backward()
