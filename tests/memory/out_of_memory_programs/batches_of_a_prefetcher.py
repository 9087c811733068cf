"""A prefetcher moves all that its loader gives, and hands it out one by one."""

from collections.abc import Iterator

import torch
from torch import nn


class Prefetcher:
    def __init__(self, loader: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
        self.ready: list[dict[str, torch.Tensor]] = []
        for images, labels in loader:
            images = images.cuda(non_blocking=True)
            labels = labels.cuda(non_blocking=True)
            self.ready.append({"images": images, "labels": labels})

    def __iter__(self) -> Iterator[dict[str, torch.Tensor]]:
        while self.ready:
            yield self.ready.pop(0)


def run(device: str) -> None:
    loader = [(torch.randn(128, 3, 64, 32), torch.zeros(128, dtype=torch.long)) for _ in range(16)]
    net = nn.Sequential(nn.Flatten(), nn.Linear(6144, 10)).to(device)
    for batch in Prefetcher(loader):
        nn.functional.cross_entropy(net(batch["images"]), batch["labels"]).backward()
