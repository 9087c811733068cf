"""Probe a frozen encoder's features with a small network of its own."""
import torch
import torch.nn as nn


class Probe(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(size, 4), nn.ReLU(), nn.Linear(4, 2))

    def forward(self, feats):
        return self.net(feats)


class Study:
    def __init__(self, encoder):
        self.encoder = encoder
        self.probe = Probe(8)

    def parameters(self):
        yield from self.probe.parameters()

    def loss(self, x, y):
        with torch.no_grad():
            feats = self.encoder(x)
        return nn.functional.cross_entropy(self.probe(feats), y)


def run(device):
    torch.manual_seed(0)
    study = Study(nn.Sequential(nn.Linear(5, 8), nn.Tanh()).to(device))
    opt = torch.optim.SGD(study.parameters(), lr=0.1)
    x, y = torch.randn(6, 5, device=device), torch.zeros(6, dtype=torch.long, device=device)
    loss = study.loss(x, y)
    loss.backward()
    opt.step()
    return loss.item()
