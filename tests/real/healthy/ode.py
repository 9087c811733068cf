"""torchdiffeq: a neural ODE is trained, by both ways of its backward pass."""

import torch
from torch import nn
from torchdiffeq import odeint, odeint_adjoint


class Field(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward(self, t, y):
        return self.net(y) * torch.cos(t)


def run(device):
    torch.manual_seed(0)
    field = Field().to(device)
    start = torch.tensor([[1.0, 0.0]], device=device)
    times = torch.linspace(0.0, 1.0, 4, device=device)
    optimizer = torch.optim.Adam(field.parameters(), lr=0.01)
    for solve in (odeint, odeint_adjoint):
        for _ in range(2):
            optimizer.zero_grad()
            loss = solve(field, start, times, method="rk4")[-1].square().sum()
            loss.backward()
            optimizer.step()
    return loss
