"""A loss runs backward and keeps its graph; a term of the same output is kept for a plot."""

import torch
from torch import nn


def run(device: str) -> None:
    encoder = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 64)).to(device)
    optimizer = torch.optim.AdamW(encoder.parameters())
    curve: dict[str, list[object]] = {"recon": [], "smooth": []}
    for _ in range(40):
        x = torch.randn(128, 64, device=device)
        y = encoder(x)
        recon = (y - x).pow(2).mean()
        smooth = (y[1:] - y[:-1]).abs().mean()
        optimizer.zero_grad()
        recon.backward(retain_graph=True)
        optimizer.step()
        curve["recon"].append(recon.item())
        curve["smooth"].append(smooth)
