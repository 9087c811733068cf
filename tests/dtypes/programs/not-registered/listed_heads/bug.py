"""One head a task, kept in a list, and the model in bfloat16."""

import torch
from torch import nn


class Tasks(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.trunk = nn.Linear(5, 6)
        self.heads = [nn.Linear(6, 1) for _ in range(tasks)]

    def forward(self, x):
        hidden = torch.relu(self.trunk(x))
        return torch.cat([head(hidden) for head in self.heads], dim=1)


def run(device):
    torch.manual_seed(0)
    model = Tasks(2)
    for head in model.heads:
        head.to(device)
    model.to(device).to(torch.bfloat16)
    return model(torch.randn(3, 5, device=device, dtype=torch.bfloat16)).float().sum().item()
