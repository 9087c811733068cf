"""Mask the padding of scores before a softmax, in half precision."""

import torch
from torch import nn


class Pick(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.score = nn.Linear(width, 1)

    def forward(self, items, padding):
        scores = self.score(items).squeeze(-1)
        scores.masked_fill_(padding, -1e10)
        return scores.softmax(-1)


def run(device):
    torch.manual_seed(0)
    pick = Pick(4).to(device).half()
    items = torch.randn(2, 3, 4, device=device).half()
    padding = torch.tensor([[False, False, True], [False, True, True]], device=device)
    with torch.no_grad():
        return pick(items, padding).float().max().item()
