"""Normalise images by constants of the module."""
import torch
import torch.nn.functional as F
from torch import nn

MEAN = torch.tensor([0.4, 0.5, 0.6]).view(1, 3, 1, 1)
SPREAD = 0.25


def prepare(images):
    return (images - MEAN) / SPREAD


class Tiny(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, images):
        return F.adaptive_avg_pool2d(self.conv(prepare(images)), 1).flatten(1)


def run(device):
    torch.manual_seed(0)
    tiny = Tiny().to(device)
    images = torch.rand(2, 3, 8, 8).to(device)
    return tiny(images).sum().item()
