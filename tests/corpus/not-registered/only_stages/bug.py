"""All layers of a model are in a plain dict: `.to()` finds nothing to move."""

import torch
from torch import nn


class Stack(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.stages = {}
        for i in range(depth):
            self.stages[f"stage{i}"] = nn.Linear(width, width)

    def forward(self, x):
        for stage in self.stages.values():
            x = torch.relu(stage(x))
        return x


def run(device):
    stack = Stack(8, 3)
    stack.to(device)
    batch = torch.randn(4, 8, device=device)
    stack(batch).sum()
