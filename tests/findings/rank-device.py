"""Every rank copies its batches to the first GPU."""

import os

import torch
from torch import nn

import devtrace
from devtrace.jobs.merge import merge


def train(rank):
    model = nn.Linear(4, 4).to(f"cuda:{rank}")
    for _ in range(3):
        model(torch.ones(2, 4, device=f"cuda:{rank}")).sum().backward()
    for _ in range(3):
        batch = torch.ones(2, 4).to("cuda:0")
        batch.add(1)


def report():
    traces = []
    for rank in range(3):
        os.environ.update(RANK=str(rank), WORLD_SIZE="3")
        with devtrace.record("cuda:4") as recording:
            train(rank)
        traces.append(recording.trace)
    return devtrace.diagnose(merge(traces))
