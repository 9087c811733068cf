"""A layer is on the CPU, and each step copies the layer's input to the CPU."""

import torch
from torch import nn

import devtrace


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(64, 64)
        self.head = nn.Linear(64, 64)

    def forward(self, x):
        return self.head(self.body(x).cpu()).to(x.device)


def report():
    with devtrace.record("cuda:1") as recording:
        net = Net()
        net.body.to("cuda:0")
        x = torch.ones(32, 64, device="cuda:0")
        with torch.no_grad():
            for _ in range(12):
                x = net(x)
    return recording.report
