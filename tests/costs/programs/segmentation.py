"""Pixels of which some have no label: the loss takes the others, and hits are counted."""

import torch
from torch import nn
from torch.nn import functional as F


def run(device):
    torch.manual_seed(0)
    net = nn.Linear(4, 3).to(device)
    opt = torch.optim.AdamW(net.parameters())
    hits, total = 0, 0
    for _ in range(20):
        pixels, truth = torch.randn(64, 4).to(device), torch.randint(0, 4, (64,)).to(device)
        valid = truth != 3
        out = net(pixels)
        loss = F.cross_entropy(out[valid], truth[valid])  # 1
        #1> loss = F.cross_entropy(out, torch.where(valid, truth, -100))
        opt.zero_grad()
        loss.backward()
        opt.step()
        guess = out.detach().argmax(1)
        hits += (guess == truth).sum().item()  # 2
        total += 64
    return hits / total, net.weight.tolist()
