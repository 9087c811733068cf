"""Smooth a batch of signals with a learned gain, using a small helper library."""
import torch
from torch import nn

from window_filter_lib import smooth


class Gain(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(channels, 1))

    def forward(self, signal):
        return smooth(signal * self.gain, 8)


def run(device):
    torch.manual_seed(1)
    net = Gain(3).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        signal = torch.randn(2, 3, 32).to(device)
        loss = net(signal).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return float(loss)
