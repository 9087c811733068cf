"""Reuse a trained body for another number of classes."""
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten())
        self.fc = nn.Linear(16, classes)

    def forward(self, x):
        return self.fc(self.body(x))


class Finetune:
    def __init__(self, device):
        self.net = Net(10)
        self.net.to(device)
        self.device = device

    def retarget(self, classes):
        self.net.fc = nn.Linear(self.net.fc.in_features, classes)
        return self

    def loss(self, images, labels):
        return F.cross_entropy(self.net(images.to(self.device)), labels.to(self.device))


def run(device):
    torch.manual_seed(0)
    job = Finetune(device).retarget(3)
    return job.loss(torch.rand(4, 1, 8, 8), torch.tensor([0, 1, 2, 0])).item()
