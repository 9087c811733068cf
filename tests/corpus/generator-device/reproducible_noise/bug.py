"""A class draws noise from its own generator."""
import torch
from torch import nn


class Diffuser:
    def __init__(self, net, seed):
        self.net = net
        self.rng = torch.Generator()
        self.rng.manual_seed(seed)

    def sample(self, n, device):
        x = torch.randn(n, 4, generator=self.rng, device=device)
        for _ in range(3):
            x = x - 0.1 * self.net(x)
        return x


def run(device):
    torch.manual_seed(0)
    diffuser = Diffuser(nn.Linear(4, 4).to(device), 7)
    with torch.no_grad():
        return diffuser.sample(5, device).mean().item()
