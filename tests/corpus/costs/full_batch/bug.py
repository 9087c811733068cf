"""Training that copies the same data to the device in each epoch."""
import torch
import torch.nn.functional as F
from torch import nn


def run(device):
    torch.manual_seed(0)
    x, y = torch.randn(20, 4), torch.randint(0, 2, (20,))
    net = nn.Linear(4, 2).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(9):
        logits = net(x.to(device, non_blocking=True))
        loss = F.cross_entropy(logits, y.to(device))
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()
