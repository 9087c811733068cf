"""Save a checkpoint between epochs."""
import io

import torch
from torch import nn


def snapshot(model):
    buffer = io.BytesIO()
    torch.save(model.cpu().state_dict(), buffer)
    return buffer.tell()


def fit(model, data, device, epochs):
    opt = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(epochs):
        for x in data:
            loss = model(x.to(device)).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        snapshot(model)
    return loss.item()


def run(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1)).to(device)
    return fit(model, [torch.randn(4, 3) for _ in range(2)], device, 2)
