"""DataParallel over two devices."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 6)
        self.register_buffer("scale", torch.full((6,), 0.5))

    def forward(self, x):
        return (self.body(x) * self.scale).relu()


def run(device):
    torch.manual_seed(0)
    net = nn.DataParallel(Net().to(device), device_ids=[0, 1])
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(6):
        loss = net(torch.randn(8, 4, device=device)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
