"""pytorch-metric-learning 0.9.90 keeps a margin as a plain tensor and moves it in every step."""

import torch
from pytorch_metric_learning.losses import MarginLoss
from torch import nn


def run(device):
    torch.manual_seed(0)
    net = nn.Linear(6, 4).to(device)
    distance = MarginLoss(beta=1.0).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    truth = torch.arange(8, device=device) % 3
    for _ in range(12):
        optimizer.zero_grad()
        distance(net(torch.rand(8, 6, device=device)), truth).backward()
        optimizer.step()
