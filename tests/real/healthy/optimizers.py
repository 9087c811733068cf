"""torch-optimizer and pytorch_optimizer: eight optimizers, each with a state that goes through a file."""

import io

import pytorch_optimizer
import torch
import torch_optimizer
from torch import nn


def run(device):
    values = {}
    for package, name in [
        (torch_optimizer, "AdaBound"),
        (torch_optimizer, "DiffGrad"),
        (torch_optimizer, "Yogi"),
        (torch_optimizer, "QHAdam"),
        (pytorch_optimizer, "Lion"),
        (pytorch_optimizer, "AdaBelief"),
        (pytorch_optimizer, "Tiger"),
        (pytorch_optimizer, "AdaMod"),
    ]:
        torch.manual_seed(0)
        net = nn.Linear(4, 2).to(device)
        optimizer = getattr(package, name)(net.parameters(), lr=0.01)
        for half in range(2):
            for _ in range(3):
                optimizer.zero_grad()
                net(torch.ones(3, 4, device=device)).square().sum().backward()
                optimizer.step()
            if half == 0:
                file = io.BytesIO()
                torch.save(optimizer.state_dict(), file)
                file.seek(0)
                optimizer.load_state_dict(torch.load(file, weights_only=False))
        values[name] = net.weight
    return values
