"""An optimizer is built before the model is copied."""

import copy

import torch
from torch import nn

import devtrace


def report():
    with devtrace.record("cuda:1") as recording:
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model = copy.deepcopy(model).to("cuda:0")
        for _ in range(4):
            optimizer.zero_grad()
            model(torch.ones(3, 4, device="cuda:0")).sum().backward()
            optimizer.step()
    return recording.report
