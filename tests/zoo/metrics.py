"""Metrics gathered on the device and read at the end of each epoch."""

import torch
import torch.nn.functional as F
from torch import nn


class Accuracy(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("right", torch.zeros(()))
        self.register_buffer("seen", torch.zeros(()))

    def update(self, logits, target):
        self.right += (logits.argmax(-1) == target).sum()
        self.seen += target.numel()


def run(device):
    torch.manual_seed(0)
    net, metric = nn.Linear(4, 3).to(device), Accuracy().to(device)
    history = []
    for _ in range(4):
        with torch.no_grad():
            for _ in range(6):
                metric.update(net(torch.randn(5, 4, device=device)), torch.randint(0, 3, (5,), device=device))
        history.append(float(metric.right / metric.seen))
    return history
