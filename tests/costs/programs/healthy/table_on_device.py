"""What each batch needs is a buffer, and a bound is kept as a tensor."""

import torch
from torch import nn


class Coded(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)
        self.register_buffer("code", torch.cos(torch.arange(8.0)), persistent=False)

    def forward(self, x):
        out = self.lin(x + self.code[: x.shape[1]])
        most = out.detach().abs().amax()
        return torch.minimum(out, most / 2) / most


def run(device):
    torch.manual_seed(0)
    net = Coded().to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    total = torch.zeros((), device=device)
    for x in torch.rand(25, 6, 8, device=device):
        loss = net(x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.detach()
    return total.item()
