"""A data set in memory on the host, cut into batches by slices."""

import torch
import torch.nn.functional as F
from torch import nn


def run(device):
    torch.manual_seed(0)
    xs, ys = torch.randn(64, 3), torch.randn(64, 1)
    net = nn.Linear(3, 1).to(device)
    opt = torch.optim.LBFGS(net.parameters(), max_iter=2)
    for epoch in range(3):
        for i in range(0, 64, 8):
            x, y = xs[i : i + 8].to(device), ys[i : i + 8].to(device)

            def closure():
                opt.zero_grad()
                loss = F.mse_loss(net(x), y)
                loss.backward()
                return loss

            opt.step(closure)
