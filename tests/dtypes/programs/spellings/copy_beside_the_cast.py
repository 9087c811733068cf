# stale-copy, teacher.0.weight, float32
import copy

import torch
from torch import nn


def distill(student, teacher, x):
    with torch.no_grad():
        wanted = teacher(x)  # failed
    return (student(x) - wanted).square().mean()


def run(device):
    torch.manual_seed(0)
    student = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 2))
    teacher = copy.deepcopy(student)  # born
    student = student.half()
    return distill(student, teacher, torch.randn(3, 6).half()).item()
