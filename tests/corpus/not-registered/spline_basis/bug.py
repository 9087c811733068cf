"""Spline features; the knots are reached through a property."""
import torch
import torch.nn as nn


class Spline(nn.Module):
    def __init__(self, knots):
        super().__init__()
        self._knots = torch.linspace(-1, 1, knots)
        self.mix = nn.Linear(knots, 1)

    @property
    def knots(self):
        return self._knots

    def forward(self, x):
        basis = (x - self.knots).relu()
        return self.mix(basis)


class Ensemble(nn.Module):
    def __init__(self):
        super().__init__()
        self.members = nn.ModuleList([Spline(6), Spline(9)])

    def forward(self, x):
        return sum(member(x) for member in self.members)


def run(device):
    torch.manual_seed(0)
    model = Ensemble()
    model = model.to(device)
    return model(torch.rand(10, 1, device=device)).mean().item()
