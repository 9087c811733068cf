# stale-copy, optimizer.state[model.weight]["exp_avg"], float32
import torch
from torch import nn


def step(model, optimizer, x):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()  # born and failed
    return loss


def run(device):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x = torch.randn(8, 4)
    step(model, optimizer, x)
    model.bfloat16()
    return step(model, optimizer, x.bfloat16()).item()
