"""A buffer is given a checkpoint's tensor after the move."""

import io
import torch
from torch import nn


class Queue(nn.Module):
    def __init__(self, d, k):
        super().__init__()
        self.enc = nn.Linear(d, d)
        self.register_buffer("bank", torch.randn(k, d))
    def forward(self, x):
        return self.enc(x) @ self.bank.T


def run(device):
    moco = Queue(4, 6).to(device)
    f = io.BytesIO(); torch.save(moco.state_dict(), f); f.seek(0)
    saved = torch.load(f, map_location="cpu")
    moco.bank = saved["bank"]
    moco(torch.randn(2, 4, device=device))
