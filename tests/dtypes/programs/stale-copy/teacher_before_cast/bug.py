"""A frozen teacher is copied from the student before that is cast."""

import copy

import torch
from torch import nn


def run(device):
    torch.manual_seed(0)
    student = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).to(device)
    teacher = copy.deepcopy(student).requires_grad_(False)
    student.half()
    x = torch.randn(6, 4, device=device).half()
    return nn.functional.mse_loss(student(x), teacher(x)).float().item()
