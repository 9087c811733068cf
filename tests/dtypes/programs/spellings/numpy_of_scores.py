# target-dtype, self.net(x)[:, 0], bfloat16
import numpy as np
import torch
from torch import nn


class Scorer:
    def __init__(self, device):
        self.net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(device)

    def rank(self, x):
        return np.argsort(self.net(x)[:, 0].cpu().numpy())  # born failed


@torch.no_grad()
def run(device):
    torch.manual_seed(0)
    scorer = Scorer(device)
    with torch.autocast(torch.device(device).type, dtype=torch.bfloat16):
        order = scorer.rank(torch.randn(6, 4, device=device))
    return int(order[0])
