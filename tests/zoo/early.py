"""Early stopping: one loss an epoch decides, the best weights are kept on the host."""

import torch
import torch.nn.functional as F
from torch import nn


def run(device):
    torch.manual_seed(0)
    net = nn.Linear(4, 1).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    best, kept = float("inf"), None
    x, y = torch.randn(16, 4, device=device), torch.randn(16, 1, device=device)
    for _ in range(6):
        for _ in range(4):
            loss = F.mse_loss(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        value = loss.item()
        if value < best:
            best, kept = value, {name: tensor.cpu() for name, tensor in net.state_dict().items()}
    net.load_state_dict(kept)
    return best
