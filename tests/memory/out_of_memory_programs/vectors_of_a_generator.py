"""A dictionary keeps what a generator yields, with its graphs."""

from collections.abc import Iterator

import torch
from torch import nn


def embeddings(model: nn.Module, texts: list[torch.Tensor], device: str) -> Iterator[torch.Tensor]:
    for text in texts:
        yield model(text.to(device))


def run(device: str) -> int:
    model = nn.Sequential(nn.Linear(128, 1024), nn.ReLU(), nn.Linear(1024, 512)).to(device).eval()
    texts = [torch.randn(128, 128) for _ in range(80)]
    index = {}
    for number, vector in enumerate(embeddings(model, texts, device)):
        index[number] = vector
    return len(index)
