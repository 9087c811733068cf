import torch
from torch import nn


def noise(n, dim):
    return torch.randn(n, dim)


def real_labels(n):
    return torch.ones(n, 1)


def fake_labels(n):
    return torch.zeros(n, 1)


def run(device):
    device = torch.device(device)
    G = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6)).to(device)
    D = nn.Sequential(nn.Linear(6, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1), nn.Sigmoid()).to(device)
    loss_fn = nn.BCELoss()
    opt_g = torch.optim.Adam(G.parameters(), 1e-3)
    opt_d = torch.optim.Adam(D.parameters(), 1e-3)
    for _ in range(2):
        real = torch.randn(5, 6, device=device)
        opt_d.zero_grad()
        fake = G(noise(5, 4))
        d_loss = loss_fn(D(real), real_labels(5)) + loss_fn(D(fake.detach()), fake_labels(5))
        d_loss.backward()
        opt_d.step()
        opt_g.zero_grad()
        g_loss = loss_fn(D(fake), real_labels(5))
        g_loss.backward()
        opt_g.step()
