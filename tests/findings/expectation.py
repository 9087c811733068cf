"""A cell says where it expects its work, and a part of it runs elsewhere."""

import torch

import devtrace


def report():
    with devtrace.record("cuda:1", expect="cuda:0") as recording:
        mask = torch.ones(4) > 0.5
        torch.ones(4, device="cuda:0") * 2
        mask.sum()
    return recording.report
