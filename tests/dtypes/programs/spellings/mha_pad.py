# numpy-boundary, mask, float64
import torch
from torch import nn
import numpy as np


def run(device):
    torch.manual_seed(0)
    att = nn.MultiheadAttention(8, 2, batch_first=True)
    x = torch.randn(2, 4, 8)
    block = np.triu(np.full((4, 4), -1e4), 1)
    mask = torch.from_numpy(block)  # born
    out, _ = att(x, x, x, attn_mask=mask)  # failed
    return out.sum().item()
