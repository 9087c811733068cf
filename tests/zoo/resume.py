"""Save a checkpoint, load it on the CPU, go on."""

import torch
import torch.nn.functional as F
from torch import nn


import io


def fit(net, opt, device, steps):
    for _ in range(steps):
        loss = net(torch.randn(4, 3, device=device)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()


def run(device):
    torch.manual_seed(0)
    net = nn.Linear(3, 2).to(device)
    opt = torch.optim.Adam(net.parameters())
    fit(net, opt, device, 6)
    file = io.BytesIO()
    torch.save({"net": net.state_dict(), "opt": opt.state_dict()}, file)
    file.seek(0)
    saved = torch.load(file, map_location="cpu")
    net = nn.Linear(3, 2).to(device)
    opt = torch.optim.Adam(net.parameters())
    net.load_state_dict(saved["net"])
    opt.load_state_dict(saved["opt"])
    fit(net, opt, device, 6)
