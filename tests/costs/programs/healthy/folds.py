"""Folds of a data set are moved once each; a fold's score is read when it is done."""

import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    data, scores = torch.rand(40, 5), []
    for fold in range(6):
        left_out = torch.arange(40) % 6 == fold
        train, test = data[~left_out].to(device), data[left_out].to(device)
        net = nn.Linear(4, 1).to(device)
        opt = torch.optim.Adam(net.parameters(), lr=0.05)
        for _ in range(9):
            opt.zero_grad()
            (net(train[:, :4]) - train[:, 4:]).square().mean().backward()
            opt.step()
        with torch.no_grad():
            scores.append((net(test[:, :4]) - test[:, 4:]).abs().mean().item())
    return scores
