"""Goals keep numpy's float64, a scale is cast in each step, and activations there and back."""

import numpy as np
import torch
from torch import nn

import devtrace


def report():
    with devtrace.record("cuda:1") as recording:
        model, head = nn.Linear(4, 4).to("cuda", torch.bfloat16), nn.Linear(4, 1).to("cuda")
        goals = torch.from_numpy(np.ones((3, 1))).to("cuda")
        scale = torch.rand(4, device="cuda")
        for _ in range(4):
            hidden = model(torch.ones(3, 4, dtype=torch.bfloat16, device="cuda")).float()
            hidden = model(hidden.bfloat16()) * scale.to(torch.bfloat16)
            loss = nn.functional.mse_loss(head(hidden.float()), goals)
        loss.backward()
    return recording.report
