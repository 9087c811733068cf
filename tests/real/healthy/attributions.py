"""captum: what a classifier looks at, by integrated gradients and by occlusion."""

import torch
from captum.attr import IntegratedGradients, Occlusion
from torch import nn


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3)).to(device).eval()
    samples = torch.rand(3, 6).to(device)
    gradients = IntegratedGradients(net).attribute(samples, target=1, n_steps=8)
    hidden = Occlusion(net).attribute(samples, target=1, sliding_window_shapes=(2,))
    return gradients, hidden
