# numpy-boundary, bias, float64
import torch
import torch.nn.functional as F
from torch import nn
import numpy as np


def relative(n):
    table = -np.abs(np.arange(n)[:, None] - np.arange(n)[None]) * 0.1
    return torch.from_numpy(table)  # born


def attend(x, heads, **extra):
    q, k, v = (x.unflatten(-1, (heads, -1)).transpose(1, 2) for _ in range(3))
    return F.scaled_dot_product_attention(q, k, v, **extra).transpose(1, 2).flatten(2)  # failed


def run(device):
    torch.manual_seed(0)
    x = torch.randn(2, 5, 8)
    bias = relative(5)
    return attend(x, 2, attn_mask=bias).sum().item()
