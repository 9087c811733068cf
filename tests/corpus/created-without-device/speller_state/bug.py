"""A recurrent model's first state is made by a method that knows no device."""

import torch
from torch import nn


class Speller(nn.Module):
    def __init__(self, n=12, h=16):
        super().__init__()
        self.h = h
        self.emb = nn.Embedding(n, h)
        self.cell = nn.GRUCell(h, h)
    def start(self, rows):
        return torch.zeros(rows, self.h)
    def forward(self, ids, state):
        for t in range(ids.size(1)):
            state = self.cell(self.emb(ids[:, t]), state)
        return state


def run(device):
    model = Speller().to(device)
    ids = torch.randint(0, 12, (2, 5)).to(device)
    state = model.start(2)
    model(ids, state)
