"""Totals of a simulated device, op for op, against torch's own MemTracker on the CPU: CNN, transformer, LSTM.

Two steps of Adam, each of two micro-batches. MemTracker counts on the CPU what CUDA has there, too: a `step` counter of
Adam for each parameter. Besides these the totals are the same after each op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.distributed._tools import mem_tracker

import devtrace
from modes import Ops

BLOCK = 512


class Last(nn.Module):
    """Gives the last output of a sequence."""

    def forward(self, outputs: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        return outputs[0][:, -1]


def convolutions() -> nn.Module:
    body = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU()
    return nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))


def transformer() -> nn.Module:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(32, 4, 64, 0.0, batch_first=True), 2)
    return nn.Sequential(nn.Embedding(50, 32), encoder, nn.Flatten(), nn.Linear(12 * 32, 10))


def recurrent() -> nn.Module:
    return nn.Sequential(nn.Embedding(50, 32), nn.LSTM(32, 32, batch_first=True), Last(), nn.Linear(32, 10))


Make = Callable[[], nn.Module]
MODELS: dict[Make, Callable[[], torch.Tensor]] = {
    convolutions: lambda: torch.randn(4, 3, 16, 16),
    transformer: lambda: torch.randint(0, 50, (4, 12)),
    recurrent: lambda: torch.randint(0, 50, (4, 12)),
}


def training(kind: Make, device: str, begin: Callable[[], None]) -> Iterator[tuple[Any, ...]]:
    torch.manual_seed(0)
    model = kind().to(device)
    optimizer = torch.optim.Adam(model.parameters(), foreach=False)
    x, y = MODELS[kind]().to(device), torch.zeros(4, dtype=torch.long, device=device)
    yield model, optimizer, x, y
    for _ in range(2):
        for _ in range(2):
            begin()
            loss = nn.functional.cross_entropy(model(x), y) / 2
            loss.backward()
            del loss
        optimizer.step()
        optimizer.zero_grad()


def on_the_host(kind: Make) -> list[tuple[str, int]]:
    tracker = mem_tracker.MemTracker()
    snapshot = tracker.get_tracker_snapshot
    ops = Ops(after=lambda func, _: (str(func), sum(each.get("Total", 0) for each in snapshot("current").values())))
    steps = training(kind, "cpu", tracker.reset_mod_stats)
    tracker.track_external(*next(steps))
    with tracker, ops:
        list(steps)
    return ops.seen


def on_a_device(kind: Make) -> list[tuple[str, int]]:
    ops = Ops(after=lambda func, _: (str(func), torch.cuda.memory_allocated()))
    with devtrace.simulate("cuda:1"):
        steps = training(kind, "cuda:0", lambda: None)
        next(steps)
        with ops:
            list(steps)
    return ops.seen


@pytest.mark.parametrize("kind", MODELS)
def test_totals_are_those_of_mem_tracker_after_each_op(kind: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = mem_tracker._WeakRefInfo._calculate_mem_consumed
    monkeypatch.setattr(
        mem_tracker._WeakRefInfo, "_calculate_mem_consumed", lambda info: -(-plain(info) // BLOCK) * BLOCK
    )
    host, device = on_the_host(kind), on_a_device(kind)
    counters = BLOCK * len(list(kind().parameters()))
    assert [name for name, _ in device] == [name for name, _ in host]
    more = [mine - theirs for (_, theirs), (_, mine) in zip(host, device, strict=True)]
    assert more == sorted(more, reverse=True)
    assert (more[0], more[-1]) == (0, -counters)
