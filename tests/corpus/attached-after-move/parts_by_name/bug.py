"""A model is moved to the device before it gets its layers."""
import torch
from torch import nn


class Assembled(nn.Module):
    def forward(self, ids):
        return self.readout(self.table(ids)).mean()


def run(device):
    torch.manual_seed(0)
    model = Assembled().to(device)
    model.table = nn.Embedding(11, 4)
    model.readout = nn.Linear(4, 2)
    ids = torch.randint(0, 11, (5,), device=device)
    model(ids).backward()
    return model.readout.weight.grad.sum().item()
