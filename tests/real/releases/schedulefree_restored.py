"""schedulefree 1.2.7 averages with a state that was loaded before the model moved (mended in 1.2.8)."""

import io

import torch
from schedulefree import AdamWScheduleFree
from torch import nn


def run(device):
    torch.manual_seed(0)
    net = nn.Linear(3, 2).to(device)
    optimizer = AdamWScheduleFree(net.parameters())
    optimizer.train()
    net(torch.rand(6, 3, device=device)).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save([net.state_dict(), optimizer.state_dict()], file)

    file.seek(0)
    weights, state = torch.load(file, map_location="cpu", weights_only=False)
    again = nn.Linear(3, 2)
    averaging = AdamWScheduleFree(again.parameters())
    again.load_state_dict(weights)
    averaging.load_state_dict(state)
    again.to(device)
    averaging.eval()
