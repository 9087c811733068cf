"""rotary-embedding-torch 0.1.2 caches angles: those of a dry run on the CPU are moved in every call."""

import torch
from rotary_embedding_torch import RotaryEmbedding, apply_rotary_emb
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.rotary = RotaryEmbedding(dim=8)
        self.mix = nn.Linear(8, 8)

    def forward(self, x):
        angles = self.rotary(lambda: torch.arange(x.shape[1], device=x.device), cache_key=x.shape[1])
        return self.mix(apply_rotary_emb(angles, x))


def run(device):
    torch.manual_seed(0)
    net = Attention()
    net(torch.rand(1, 10, 8))  # counts parameters, as many do
    net.to(device)
    for _ in range(12):
        net(torch.rand(4, 10, 8, device=device))
