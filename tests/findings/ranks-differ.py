"""One rank alone leaves a buffer on the CPU."""

import os

import torch
from torch import nn

import devtrace
from devtrace.jobs.merge import merge


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x):
        return self.inner(x) * self.scale.to(x.device)


def train(rank):
    model = Scaled().to(f"cuda:{rank}")
    if rank == 1:
        model.scale = model.scale.cpu()
    model(torch.ones(2, 4, device=f"cuda:{rank}"))


def report():
    traces = []
    for rank in range(3):
        os.environ.update(RANK=str(rank), WORLD_SIZE="3")
        with devtrace.record("cuda:4") as recording:
            train(rank)
        traces.append(recording.trace)
    return devtrace.diagnose(merge(traces))
