"""A tensor is an attribute of a module's class."""

import torch
from torch import nn


class Prep(nn.Module):
    MEAN = torch.tensor([0.4, 0.5, 0.6]).view(3, 1, 1)
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)
    def forward(self, image):
        return self.conv(image - self.MEAN)


def run(device):
    model = nn.Sequential(Prep(), nn.ReLU()).to(device)
    model(torch.rand(1, 3, 8, 8).to(device))
