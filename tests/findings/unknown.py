"""The source of what failed is nowhere to be read, and nobody recorded it."""

import torch

import devtrace

HIDDEN = "def add(values):\n    return values['left'] + values['right']\n"


def report():
    space = {}
    exec(HIDDEN, space)
    with devtrace.simulate("cuda:1"):
        values = {"left": torch.ones(2, device="cuda:0"), "right": torch.ones(2)}
        try:
            space["add"](values)
        except RuntimeError as error:
            return devtrace.explain(error)
