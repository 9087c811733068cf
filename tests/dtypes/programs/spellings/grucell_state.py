# created-without-dtype, state, float32
import torch
from torch import nn


class Walk(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.cell = nn.GRUCell(3, width)
    def start(self, x):
        return torch.zeros(x.size(1), self.width)  # born
    def forward(self, x):
        state = self.start(x)
        for step in x:
            state = self.cell(step, state)  # failed
        return state


def run(device):
    torch.manual_seed(0)
    net = Walk(5).double()
    return net(torch.randn(4, 2, 3, dtype=torch.double)).mean().item()
