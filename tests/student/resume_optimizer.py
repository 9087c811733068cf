import io

import torch
from torch import nn


def train_step(model, optimizer, device):
    x = torch.randn(4, 3, device=device)
    loss = model(x).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def save(model, optimizer):
    buffer = io.BytesIO()
    torch.save({"model": model.state_dict(), "optim": optimizer.state_dict()}, buffer)
    buffer.seek(0)
    return buffer


def run(device):
    first = nn.Linear(3, 2)
    opt = torch.optim.Adam(first.parameters())
    train_step(first, opt, "cpu")
    file = save(first, opt)

    checkpoint = torch.load(file, map_location="cpu")
    model = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(model.parameters())
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optim"])
    model = model.to(device)
    for _ in range(2):
        train_step(model, optimizer, device)
