"""captum 0.2.0 makes the index of the targets without a device (mended in 0.3.0)."""

import torch
from captum.attr import Saliency
from torch import nn


def run(device):
    torch.manual_seed(0)
    classifier = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 5)).to(device)
    samples = torch.rand(3, 6, device=device, requires_grad=True)
    return Saliency(classifier).attribute(samples, target=[4, 0, 2])
