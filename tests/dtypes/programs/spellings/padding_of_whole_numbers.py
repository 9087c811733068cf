# target-dtype, pad, int64
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, 2, batch_first=True)
    def forward(self, x, pad):
        return self.attn(x, x, x, key_padding_mask=pad)[0]  # failed


def run(device):
    torch.manual_seed(0)
    ids = torch.tensor([[3, 4, 0], [5, 6, 7]])
    pad = (ids == 0).long()  # born
    x = nn.Embedding(8, 4)(ids)
    return Block(4)(x, pad).sum().item()
