"""Every position attends to every other: the matrix of their scores is what does not fit."""

import torch


def run(device: str) -> None:
    query, key = torch.randn(4, 1500, 32, device=device), torch.randn(4, 1500, 32, device=device)
    weights = (query @ key.transpose(1, 2)).softmax(-1)
    print((weights @ key).shape)
