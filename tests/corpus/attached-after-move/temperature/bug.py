"""Calibrate a classifier by a temperature fitted afterwards."""
import torch
import torch.nn.functional as F
from torch import nn


class Calibrated(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        logits = self.inner(x)
        return logits / self.temperature if hasattr(self, "temperature") else logits


def calibrate(model, x, y):
    model.temperature = nn.Parameter(torch.full((1, 3), 1.5))
    opt = torch.optim.LBFGS([model.temperature], max_iter=3)

    def closure():
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss

    return opt.step(closure)


def run(device):
    torch.manual_seed(0)
    model = Calibrated(nn.Linear(4, 3)).to(device)
    x, y = torch.randn(9, 4).to(device), torch.randint(0, 3, (9,)).to(device)
    return float(calibrate(model, x, y))
