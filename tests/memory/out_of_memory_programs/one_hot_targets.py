"""A loss is the product of one-hot targets and log-probabilities."""

import torch
from torch import nn


def run(device: str) -> None:
    logits = torch.randn(1024, 5000, device=device, requires_grad=True)
    target = torch.randint(0, 5000, (1024,), device=device)
    hot = nn.functional.one_hot(target, num_classes=5000)
    loss = -(hot * nn.functional.log_softmax(logits, dim=1)).sum(1).mean()
    loss.backward()
