"""A linear layer gets features that were computed under autocast."""

import torch
from torch import nn


def features(backbone, x):
    with torch.autocast(device_type=x.device.type, dtype=torch.bfloat16):
        return backbone(x)


def run(device):
    torch.manual_seed(0)
    backbone = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).to(device)
    probe = nn.Linear(4, 2).to(device)
    x = torch.randn(5, 8, device=device)
    z = features(backbone, x)
    return probe(z).sum().item()
