# numpy-boundary, mask, float64
import torch
import torch.nn.functional as F
from torch import nn
import numpy as np


def causal(x):
    n = x.size(1)
    return torch.tensor(np.triu(np.full((n, n), -1e4), 1))  # born


def run(device):
    torch.manual_seed(0)
    q = torch.randn(2, 2, 5, 4)
    mask = causal(q.flatten(0, 1))
    y = F.scaled_dot_product_attention(q, q, q, attn_mask=mask)  # failed
    return y.square().mean().item()
