"""Mixed precision with a gradient scaler."""

import torch
import torch.nn.functional as F
from torch import nn


def run(device):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(12):
        x = torch.randn(6, 4, device=device)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = net(x).float().square().mean()
        opt.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
