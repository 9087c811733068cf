"""A gradient penalty computed in float32 within a region of autocast."""
import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 1))

    def forward(self, x):
        return self.body(x)


def penalty(critic, x):
    x = x.detach().requires_grad_()
    with torch.autocast(x.device.type, enabled=False):
        (g,) = torch.autograd.grad(critic(x.float()).sum(), x, create_graph=True)
    return (g.norm(2, dim=1) - 1).pow(2).mean()


def run(device):
    torch.manual_seed(0)
    critic = Critic().to(device)
    opt = torch.optim.RMSprop(critic.parameters(), 1e-3)
    for _ in range(7):
        x = torch.randn(6, 5, device=device)
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            score = critic(x)
            loss = score.float().mean() + 10 * penalty(critic, x)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()
