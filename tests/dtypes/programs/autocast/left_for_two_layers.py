import torch
import torch.nn.functional as F
from torch import nn


def step(encoder, heads, x, y):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        code = encoder(x)
    hidden = heads[0](code)
    return F.mse_loss(heads[1](hidden), y)


def run(device):
    torch.manual_seed(0)
    heads = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 1)])
    return step(nn.Linear(5, 4), heads, torch.randn(6, 5), torch.randn(6, 1)).item()
