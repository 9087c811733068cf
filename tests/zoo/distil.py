"""A frozen teacher and a student, both where they should be."""

import torch
import torch.nn.functional as F
from torch import nn


def run(device):
    torch.manual_seed(0)
    teacher = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)).eval().requires_grad_(False).to(device)
    student = nn.Linear(4, 3).to(device)
    opt = torch.optim.SGD(student.parameters(), lr=0.1)
    for _ in range(12):
        x = torch.randn(8, 4).to(device)
        loss = F.kl_div(student(x).log_softmax(-1), teacher(x).softmax(-1), reduction="batchmean")
        opt.zero_grad()
        loss.backward()
        opt.step()
