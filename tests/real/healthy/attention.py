"""Attention by a chosen kernel, tensors of several lengths, ranges."""

import torch
from torch import nn
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4)).to(device)
    x = torch.rand(6, 4).to(device)
    if device == "cpu":
        doubled = net(x * 2)
    else:
        with torch.cuda.nvtx.range("doubled"):
            doubled = net(x * 2)
    query = torch.rand(1, 2, 5, 4).to(device)
    if device == "cpu":
        seen = functional.scaled_dot_product_attention(query, query, query)
    else:
        with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
            seen = functional.scaled_dot_product_attention(query, query, query)
    several = torch.nested.nested_tensor([x[:2], x[2:]], layout=torch.jagged)
    return doubled, seen, several.sin().to_padded_tensor(0.0)
