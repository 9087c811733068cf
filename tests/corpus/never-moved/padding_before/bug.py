"""A padding mask is taken from ids that are moved later."""

import torch
from torch import nn


def run(device):
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).to(device)
    ids = torch.tensor([[1, 2, 0], [3, 0, 0]])
    emb = nn.Embedding(5, 8).to(device)
    pad = ids.eq(0)
    x = emb(ids.to(device))
    layer(x, src_key_padding_mask=pad)
