"""A table is on the first GPU, and each step computes on the second GPU."""

import torch

import devtrace


def report():
    with devtrace.record("cuda:2") as recording:
        table = torch.ones(4, 4, device="cuda:0")
        x = torch.ones(4, 4, device="cuda:1")
        for _ in range(8):
            x = x @ table.to("cuda:1")
    return recording.report
