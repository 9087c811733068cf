"""A term that no backward pass runs through is logged beside the loss."""

import collections

import torch
from torch import nn


class Log:
    def __init__(self) -> None:
        self.values: dict[str, list[object]] = collections.defaultdict(list)

    def note(self, **values: object) -> None:
        for name, value in values.items():
            self.values[name].append(value)


def run(device: str) -> None:
    body = nn.Sequential(nn.Linear(64, 512), nn.GELU(), nn.Linear(512, 64)).to(device)
    judge = nn.Sequential(nn.Linear(64, 1024), nn.GELU(), nn.Linear(1024, 1)).to(device)
    optimizer = torch.optim.SGD(body.parameters(), lr=0.01)
    log = Log()
    for _ in range(20):
        x = torch.randn(256, 64, device=device)
        out = body(x)
        loss = (out - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.note(loss=loss.item(), judged=judge(out.detach()).mean())
