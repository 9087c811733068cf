"""pytorch_optimizer 3.0.1 leaves what a checkpoint brought of Prodigy's groups on the CPU (mended in 3.0.2)."""

import io

import torch
from pytorch_optimizer import Prodigy
from torch import nn


def run(device):
    torch.manual_seed(0)
    net = nn.Linear(3, 2).to(device)

    def fit(optimizer):
        for _ in range(2):
            optimizer.zero_grad()
            net(torch.rand(6, 3, device=device)).square().mean().backward()
            optimizer.step()

    first = Prodigy(net.parameters())
    fit(first)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second = Prodigy(net.parameters())
    second.load_state_dict(torch.load(file, map_location="cpu", weights_only=False))
    fit(second)
