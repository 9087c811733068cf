"""Generator and discriminator, two optimizers."""

import torch
import torch.nn.functional as F
from torch import nn


def run(device):
    torch.manual_seed(0)
    make = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 6)).to(device)
    judge = nn.Sequential(nn.Linear(6, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)).to(device)
    opt_make = torch.optim.Adam(make.parameters())
    opt_judge = torch.optim.Adam(judge.parameters())
    losses = []
    for _ in range(12):
        real = torch.randn(8, 6).to(device)
        fake = make(torch.randn(8, 4, device=device))
        yes, no = torch.ones(8, 1, device=device), torch.zeros(8, 1, device=device)
        loss = F.binary_cross_entropy_with_logits(judge(real), yes)
        loss = loss + F.binary_cross_entropy_with_logits(judge(fake.detach()), no)
        opt_judge.zero_grad()
        loss.backward()
        opt_judge.step()
        loss = F.binary_cross_entropy_with_logits(judge(fake), yes)
        opt_make.zero_grad()
        loss.backward()
        opt_make.step()
        losses.append(loss.detach())
    return torch.stack(losses).mean().item()
