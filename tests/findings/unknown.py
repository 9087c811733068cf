"""The code that fails has no source file, and nobody recorded the run."""

import torch

import devtrace

HIDDEN = "def add(of, count):\n    return of(count, device='cuda:0') + of(count)\n"


def report():
    space = {}
    exec(HIDDEN, space)
    with devtrace.simulate("cuda:1"):
        try:
            space["add"](torch.ones, 2)
        except RuntimeError as error:
            return devtrace.explain(error)
