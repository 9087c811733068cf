"""Autocast, a scaler, and a model that was cast as well."""

import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1)).to(device).half()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(torch.device(device).type, init_scale=64.0)
    x, y = torch.randn(6, 5, device=device), torch.randn(6, 1, device=device)
    for _ in range(2):
        optimizer.zero_grad()
        with torch.autocast(torch.device(device).type, dtype=torch.float16):
            loss = nn.functional.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return loss.item()
