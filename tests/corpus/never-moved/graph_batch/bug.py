"""Message passing over a batch given as a named tuple."""
from typing import NamedTuple

import torch
from torch import nn


class Graph(NamedTuple):
    nodes: torch.Tensor
    edges: torch.Tensor
    weight: torch.Tensor


def stream(count):
    for seed in range(count):
        gen = torch.Generator().manual_seed(seed)
        yield Graph(torch.randn(5, 3, generator=gen), torch.randint(0, 5, (2, 8), generator=gen), torch.rand(8, 1, generator=gen))


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, g):
        src, dst = g.edges
        sent = self.lin(g.nodes)[src] * g.weight
        return torch.zeros_like(g.nodes).index_add(0, dst, sent)


def run(device):
    torch.manual_seed(0)
    conv = Conv().to(device)
    total = []
    for graph in stream(2):
        graph = graph._replace(nodes=graph.nodes.to(device), edges=graph.edges.to(device))
        total.append(conv(graph).sum().detach())
    return sum(total).item()
