"""Calibration error as a metric module."""
import torch
from torch import nn


class Calibration(nn.Module):
    def __init__(self, bins):
        super().__init__()
        self.bins = bins
        self.hits = torch.zeros(bins)
        self.register_buffer("total", torch.zeros(bins))

    def update(self, prob, label):
        conf, guess = prob.max(-1)
        where = (conf * self.bins).long().clamp(max=self.bins - 1)
        self.total += torch.bincount(where, minlength=self.bins)
        self.hits += torch.bincount(where, weights=(guess == label).float(), minlength=self.bins)

    def compute(self):
        return (self.hits / self.total.clamp(min=1)).mean()


def run(device):
    torch.manual_seed(0)
    net, metric = nn.Linear(5, 4).to(device), Calibration(5).to(device)
    with torch.no_grad():
        for _ in range(2):
            prob = net(torch.randn(8, 5, device=device)).softmax(-1)
            metric.update(prob, torch.randint(0, 4, (8,), device=device))
    return metric.compute().item()
