"""An encoder on one device, a decoder on the other, and skips between them."""
import torch
import torch.nn as nn


class Ladder(nn.Module):
    def __init__(self, lower, upper):
        super().__init__()
        self.lower, self.upper = torch.device(lower), torch.device(upper)
        self.enc = nn.ModuleList([nn.Linear(4, 8), nn.Linear(8, 8)]).to(self.lower)
        self.dec = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 8)]).to(self.upper)
        self.out = nn.Linear(8, 1).to(self.upper)

    def forward(self, x):
        skips = []
        for layer in self.enc:
            x = torch.relu(layer(x))
            skips.append(x)
        x = x.to(self.upper)
        for layer in self.dec:
            x = layer(x + skips.pop())
        return self.out(x)


def run(device, second):
    torch.manual_seed(0)
    net = Ladder(device, second)
    loss = net(torch.randn(3, 4).to(device)).mean()
    loss.backward()
    return loss.item()
