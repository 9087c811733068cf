"""torchsde: times that are on the device are read by Python in each step of the solver."""

import torch
import torchsde
from torch import nn


class Drifting(nn.Module):
    noise_type = "diagonal"
    sde_type = "stratonovich"

    def __init__(self):
        super().__init__()
        self.drift = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 2))
        self.spread = nn.Parameter(torch.full((2,), 0.1))

    def f(self, t, y):
        return self.drift(y)

    def g(self, t, y):
        return self.spread.expand_as(y)


def run(device):
    torch.manual_seed(0)
    sde = Drifting().to(device)
    start = torch.full((4, 2), 0.1, device=device)
    times = torch.linspace(0, 0.5, 3, device=device)
    optimizer = torch.optim.Adam(sde.parameters(), lr=1e-2)
    losses = []
    for step, solve in enumerate((torchsde.sdeint, torchsde.sdeint_adjoint, torchsde.sdeint)):
        noise = torchsde.BrownianInterval(t0=0.0, t1=0.5, size=(4, 2), device=device, entropy=step)
        path = solve(sde, start, times, bm=noise, method="midpoint", dt=0.1)
        loss = (path[-1] - 1).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, sde.spread
