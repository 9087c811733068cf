"""Embedding bags of words, offsets and all."""

import torch
import torch.nn.functional as F
from torch import nn


def run(device):
    torch.manual_seed(0)
    bag = nn.EmbeddingBag(30, 6, mode="mean").to(device)
    head = nn.Linear(6, 2).to(device)
    opt = torch.optim.SGD([*bag.parameters(), *head.parameters()], lr=0.1)
    for _ in range(12):
        words = torch.randint(0, 30, (12,)).to(device)
        offsets = torch.tensor([0, 4, 7]).to(device)
        loss = F.cross_entropy(head(bag(words, offsets)), torch.tensor([0, 1, 0], device=device))
        opt.zero_grad()
        loss.backward()
        opt.step()
