"""A critic with gradient penalty."""
import torch
from torch import nn


def gradient_penalty(critic, real, fake):
    eps = torch.rand(real.size(0), 1)
    mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)
    score = critic(mixed).sum()
    (grads,) = torch.autograd.grad(score, mixed, create_graph=True)
    return ((grads.norm(2, dim=1) - 1) ** 2).mean()


class Trainer:
    def __init__(self, device):
        self.device = device
        self.critic = nn.Sequential(nn.Linear(4, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)).to(device)
        self.opt = torch.optim.Adam(self.critic.parameters(), lr=1e-3)

    def step(self):
        real, fake = torch.randn(8, 4).to(self.device), torch.randn(8, 4).to(self.device)
        loss = self.critic(fake).mean() - self.critic(real).mean() + 10 * gradient_penalty(self.critic, real, fake)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        return loss.detach()


def run(device):
    torch.manual_seed(3)
    trainer = Trainer(device)
    return [trainer.step() for _ in range(2)][-1].item()
