"""A GAN whose labels are made on the CPU for each batch, and whose log line reads four numbers."""

import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    generator = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 12)).to(device)
    critic = nn.Sequential(nn.Linear(12, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1), nn.Sigmoid()).to(device)
    g_optimizer = torch.optim.Adam(generator.parameters(), lr=2e-4)
    d_optimizer = torch.optim.Adam(critic.parameters(), lr=2e-4)
    criterion = nn.BCELoss()
    images, noise = torch.rand(14, 16, 12, device=device), torch.rand(14, 16, 8, device=device)
    log = []
    for i, (real, z) in enumerate(zip(images, noise)):
        real_labels = torch.ones(16, 1).to(device)  # 2
        real_score = critic(real)
        fake = generator(z)
        fake_score = critic(fake.detach())
        d_loss = criterion(real_score, real_labels) + criterion(fake_score, 1 - real_labels)
        d_optimizer.zero_grad()
        d_loss.backward()
        d_optimizer.step()
        g_loss = criterion(critic(fake), real_labels)
        g_optimizer.zero_grad()
        g_loss.backward()
        g_optimizer.step()
        log.append((i, d_loss.item(), g_loss.item(), real_score.mean().item(), fake_score.mean().item()))  # 1
        #1> log.append((i, d_loss.detach(), g_loss.detach(), real_score.mean().detach(), fake_score.mean().detach()))
    #1> numbers = torch.stack([torch.stack(values) for _, *values in log]).tolist()
    #1> log = [(i, *values) for (i, *_), values in zip(log, numbers)]
    return log
