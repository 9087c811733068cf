"""Scores of a large vocabulary are made float32 for the loss."""

import torch
from torch import nn


def run(device: str) -> None:
    head = nn.Linear(32, 16_000, bias=False).to(device, torch.bfloat16)
    scores = head(torch.randn(512, 32, device=device, dtype=torch.bfloat16))
    labels = torch.zeros(512, dtype=torch.long, device=device)
    loss = nn.functional.cross_entropy(scores.float(), labels)
    loss.backward()
