"""The program compares a device with a string."""

import torch

import devtrace


def report():
    with devtrace.record("cuda:1") as recording:
        x = torch.ones(4)
        if x.device == "cpu":
            x = x.to("cuda:0")
        x * 2
    return recording.report
