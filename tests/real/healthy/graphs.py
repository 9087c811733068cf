"""A step that is captured as a CUDA graph, attention by a chosen kernel, tensors of several lengths, ranges."""

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
        given = torch.zeros(6, 4, device=device)
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph):
            doubled = net(given * 2)
        with torch.cuda.nvtx.range("replay"):
            given.copy_(x)
            graph.replay()
    query = torch.rand(1, 2, 5, 4).to(device)
    if device == "cpu":
        seen = functional.scaled_dot_product_attention(query, query, query)
    else:
        with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
            seen = functional.scaled_dot_product_attention(query, query, query)
    several = torch.nested.nested_tensor([x[:2], x[2:]], layout=torch.jagged)
    return doubled, seen, several.sin().to_padded_tensor(0.0)
