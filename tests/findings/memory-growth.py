"""A validation adds up its losses, and each loss keeps its graph. The memory is large enough."""

import torch
from torch import nn

import devtrace
from devtrace.api.results import Report


def validate(model: nn.Module, device: str) -> torch.Tensor:
    total = torch.zeros((), device=device)
    for _ in range(24):
        batch = torch.randn(512, 64, device=device)
        total += (model(batch) - batch).square().mean()
    return total


def report() -> Report:
    with devtrace.record(simulate="cuda:1") as recording:
        model = nn.Sequential(nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 64)).to("cuda")
        validate(model, "cuda")
    return recording.report
