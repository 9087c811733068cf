"""A mean of what is known, by weights, and a step that is skipped without asking."""

import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    net = nn.Linear(8, 8).to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=0.01)
    kept = torch.zeros(20, device=device)
    for step, x in enumerate(torch.rand(20, 16, 8, device=device)):
        known = (x > 0.2).float()
        loss = ((net(x * known) - x).square() * known).sum() / known.sum().clamp(min=1)
        opt.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()
        kept[step] = norm.detach()
    return kept.tolist()
