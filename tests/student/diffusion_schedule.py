import torch
from torch import nn

T = 10


class Schedule:
    def __init__(self, steps):
        self.betas = torch.linspace(1e-4, 0.02, steps)
        self.alphas = 1 - self.betas
        self.alpha_bar = torch.cumprod(self.alphas, 0)

    def add_noise(self, x, t):
        noise = torch.randn_like(x)
        bar = self.alpha_bar[t].view(-1, 1)
        return bar.sqrt() * x + (1 - bar).sqrt() * noise, noise

    def step_back(self, x, eps, t):
        mean = (x - self.betas[t] / (1 - self.alpha_bar[t]).sqrt() * eps) / self.alphas[t].sqrt()
        return mean + self.betas[t].sqrt() * torch.randn(x.shape) if t > 0 else mean


def run(device):
    schedule = Schedule(T)
    net = nn.Sequential(nn.Linear(3, 8), nn.SiLU(), nn.Linear(8, 2)).to(device)
    for _ in range(2):
        x = torch.randn(6, 2).to(device)
        t = torch.randint(0, T, (6,), device=device)
        noisy, noise = schedule.add_noise(x, t)
        pred = net(torch.cat([noisy, t[:, None] / T], 1))
        (pred - noise).pow(2).mean().backward()
    with torch.no_grad():
        x = torch.randn(4, 2, device=device)
        for i in reversed(range(T)):
            steps = torch.full((4, 1), i / T)
            x = schedule.step_back(x, net(torch.cat([x, steps], 1)), i)
