# autocast-off, feats, bfloat16
import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    proj = nn.Linear(6, 4)
    bank = torch.randn(5, 6)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        feats = proj(torch.randn(2, 6))
        feats = feats / 2  # born
    keys = proj(bank)
    sims = torch.mm(feats, keys.t())  # failed
    return sims.float().mean().item()
