from functools import partial

import torch
from torch import nn


def rescale(x, low, high):
    return (x - low) / (high - low)


def clamp_features(x, limits):
    return torch.minimum(x, limits)


def run(device):
    train = torch.rand(30, 4) * 10
    transform = partial(rescale, low=train.min(0).values, high=train.max(0).values)
    clip = partial(clamp_features, limits=torch.ones(4))
    model = nn.Linear(4, 1)
    model.to(device)
    for i in range(0, 30, 10):
        x = train[i : i + 10].to(device)
        model(clip(transform(x))).mean().backward()
