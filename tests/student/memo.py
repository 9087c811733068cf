"""A dictionary of masks by length, filled by a check of shapes on the CPU before the move."""

import torch
from torch import nn

MASKS = {}


def causal(n):
    if n not in MASKS:
        MASKS[n] = torch.full((n, n), float("-inf")).triu(1)
    return MASKS[n]


class Attend(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.qk = nn.Linear(d, 2 * d)

    def forward(self, x):
        q, k = self.qk(x).chunk(2, -1)
        return (q @ k.transpose(1, 2) + causal(x.size(1))).softmax(-1) @ x


def run(device):
    torch.manual_seed(0)
    net = Attend(4)
    assert net(torch.zeros(1, 3, 4)).shape == (1, 3, 4)
    net = net.to(device)
    opt = torch.optim.Adam(net.parameters())
    for n in (3, 5, 3):
        loss = net(torch.randn(2, n, 4, device=device)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()
