"""A logger gets every weight and the loss in each step."""

import torch
from torch import nn


class Board:
    def __init__(self):
        self.scalars, self.histograms = [], []

    def add_scalar(self, tag, value, step):
        self.scalars.append((tag, value, step))

    def add_histogram(self, tag, values, step):
        self.histograms.append((tag, values, step))


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    board, losses, kept = Board(), [], []
    for step, x in enumerate(torch.rand(14, 16, 8, device=device)):
        loss = net(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        board.add_scalar("loss", loss.item(), step)  # 2
        #2> losses.append(loss.detach())
        for name, weight in net.named_parameters():
            board.add_histogram(name, weight.detach().cpu().clone(), step)  # 1
            #1> kept.append((name, weight.detach().clone(), step))
    for step, value in enumerate(torch.stack(losses).tolist() if losses else []):
        board.add_scalar("loss", value, step)
    for name, weight, step in kept:
        board.add_histogram(name, weight.cpu(), step)
    return board.scalars, [(name, values.tolist(), step) for name, values, step in board.histograms]
