"""Train with Adagrad, whose sums exist from the start."""
import torch
import torch.nn.functional as F
from torch import nn


def build():
    net = nn.Linear(6, 1)
    opt = torch.optim.Adagrad(net.parameters(), lr=0.1, foreach=False)
    return net, opt


def run(device):
    torch.manual_seed(0)
    net, opt = build()
    net = net.to(device)
    x, y = torch.randn(8, 6, device=device), torch.rand(8, 1, device=device)
    for _ in range(2):
        loss = F.mse_loss(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()
