"""A half model with float32 master weights that the optimizer steps, copied back after each step."""
import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).bfloat16()
    masters = [p.detach().float().clone().requires_grad_() for p in model.parameters()]
    optimizer = torch.optim.SGD(masters, lr=0.1, momentum=0.9)
    for _ in range(3):
        x = torch.randn(16, 4)
        loss = (model(x.bfloat16()).float() - x.sum(1, keepdim=True)).square().mean()
        model.zero_grad()
        loss.backward()
        for master, p in zip(masters, model.parameters()):
            master.grad = p.grad.float()
        optimizer.step()
        with torch.no_grad():
            for master, p in zip(masters, model.parameters()):
                p.copy_(master)
    return loss.item()
