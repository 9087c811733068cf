"""A GAN with a fixed noise for its pictures, labels on the device, and a log line every tenth step."""

import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    generator = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 12), nn.Tanh()).to(device)
    critic = nn.Sequential(nn.Linear(12, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)).to(device)
    optimizers = [torch.optim.Adam(net.parameters(), lr=2e-4, betas=(0.5, 0.999)) for net in (critic, generator)]
    criterion = nn.BCEWithLogitsLoss()
    fixed = torch.randn(4, 8, device=device)
    pictures = []
    for step, real in enumerate(torch.rand(30, 16, 12)):
        real = real.to(device, non_blocking=True)
        yes, no = torch.ones(16, 1, device=device), torch.zeros(16, 1, device=device)
        fake = generator(torch.randn(16, 8, device=device))
        optimizers[0].zero_grad(set_to_none=True)
        d_loss = criterion(critic(real), yes) + criterion(critic(fake.detach()), no)
        d_loss.backward()
        optimizers[0].step()
        optimizers[1].zero_grad(set_to_none=True)
        g_loss = criterion(critic(fake), yes)
        g_loss.backward()
        optimizers[1].step()
        if step % 10 == 9:
            f"[{step}] loss of the critic {d_loss.item():.3f}, of the generator {g_loss.item():.3f}"
            with torch.no_grad():
                pictures.append(generator(fixed).cpu())
    return len(pictures)
