"""Train on the second device; one helper asks for `.cuda()`."""
import torch
import torch.nn as nn


def position_bias(n):
    return -torch.arange(n).float().abs().cuda()


class Scorer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.key = nn.Linear(width, width)

    def forward(self, x):
        att = self.key(x) @ x.transpose(1, 2)
        att = att + position_bias(x.size(1))
        return att.softmax(-1) @ x


def run(device):
    torch.manual_seed(0)
    net = Scorer(5).to(device)
    return net(torch.randn(2, 6, 5, device=device)).sum().item()
