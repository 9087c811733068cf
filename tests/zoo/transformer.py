"""A transformer encoder with a buffer of positions and a mask made on the right device."""

import torch
import torch.nn.functional as F
from torch import nn


class Encoder(nn.Module):
    def __init__(self, vocab=20, width=8):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.register_buffer("positions", torch.randn(16, width), persistent=False)
        layer = nn.TransformerEncoderLayer(width, 2, 16, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, vocab)

    def forward(self, ids):
        n = ids.size(1)
        mask = torch.ones(n, n, dtype=torch.bool, device=ids.device).triu(1)
        return self.head(self.body(self.embed(ids) + self.positions[:n], mask=mask, is_causal=True))


def run(device):
    torch.manual_seed(0)
    net = Encoder().to(device)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for _ in range(12):
        ids = torch.randint(0, 20, (2, 9), device=device)
        loss = F.cross_entropy(net(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
