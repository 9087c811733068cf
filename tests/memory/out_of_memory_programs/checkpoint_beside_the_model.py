"""A run is resumed; what was read stays beside the model and the optimizer that it was copied into."""

import io

import torch
from torch import nn


def saved(device: str) -> io.BytesIO:
    net = nn.Linear(1024, 3072).to(device)
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.randn(2, 1024, device=device)).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    return file


def run(device: str) -> None:
    file = saved(device)
    state = torch.load(file, map_location=device)
    net = nn.Linear(1024, 3072).to(device)
    net.load_state_dict(state["net"])
    optimizer = torch.optim.Adam(net.parameters(), foreach=False)
    optimizer.load_state_dict(state["optimizer"])
    for _ in range(2):
        x = torch.randn(64, 1024, device=device)
        net(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
