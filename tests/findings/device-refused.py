"""The program asks for a second GPU on a machine with one GPU."""

from contextlib import suppress

import torch
from torch import nn

import devtrace


def report():
    device = torch.device("cuda:1")
    with suppress(RuntimeError), devtrace.record("cuda:1") as recording:
        nn.Linear(4, 2).to(device)
    return recording.report
