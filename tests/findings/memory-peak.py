"""A model, its gradients and the state of its optimizer hold memory."""

import torch
from torch import nn

import devtrace
from devtrace.api.results import Report


def report() -> Report:
    with devtrace.record(simulate="cuda:1", memory=True) as recording:
        model = nn.Linear(1024, 1024).to("cuda")
        optimizer = torch.optim.Adam(model.parameters(), foreach=False)
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.ones(8, 1024, device="cuda")).square().mean().backward()
            optimizer.step()
    return recording.report
