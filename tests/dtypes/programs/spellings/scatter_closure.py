# created-without-dtype, out, float32
import torch
from torch import nn


def make_aggregate(n):
    def aggregate(x, index):
        out = torch.zeros(n, x.size(1))  # born
        return out.scatter_add_(0, index[:, None].expand_as(x), x)  # failed
    return aggregate


def run(device):
    torch.manual_seed(0)
    net = nn.Linear(3, 4, dtype=torch.float64)
    x = torch.randn(5, 3, dtype=torch.float64)
    agg = make_aggregate(2)
    return agg(net(x), torch.tensor([0, 1, 1, 0, 1])).sum().item()
