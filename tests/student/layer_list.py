import torch
from torch import nn


class MLP(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = []
        self.norms = []
        for i, o in zip(sizes[:-1], sizes[1:]):
            self.layers.append(nn.Linear(i, o))
            self.norms.append(nn.LayerNorm(o))
        self.head = nn.Linear(sizes[-1], 2)

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms):
            x = torch.relu(norm(layer(x)))
        return self.head(x)


def run(device):
    model = MLP([4, 8, 8]).to(device)
    x = torch.randn(3, 4).to(device)
    model(x).sum().backward()
