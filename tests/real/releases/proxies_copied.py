"""pytorch-metric-learning 0.9.90 moves the labels of its proxies in every step: they are no buffer."""

import torch
from pytorch_metric_learning.losses import ProxyNCALoss
from torch import nn


def run(device):
    torch.manual_seed(0)
    net = nn.Linear(6, 4).to(device)
    distance = ProxyNCALoss(num_classes=3, embedding_size=4).to(device)
    optimizer = torch.optim.SGD([*net.parameters(), *distance.parameters()], lr=0.1)
    truth = torch.randint(3, (8,), device=device)
    for _ in range(12):
        optimizer.zero_grad()
        distance(net(torch.rand(8, 6, device=device)), truth).backward()
        optimizer.step()
