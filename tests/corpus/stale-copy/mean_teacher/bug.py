"""A teacher that follows the student."""
import copy

import torch
from torch import nn


class MeanTeacher:
    def __init__(self, student, rate):
        self.rate = rate
        self.teacher = copy.deepcopy(student).requires_grad_(False)

    def follow(self, student):
        with torch.no_grad():
            for t, s in zip(self.teacher.parameters(), student.parameters()):
                t.mul_(self.rate)
                t.add_(s, alpha=1 - self.rate)


def run(device):
    torch.manual_seed(0)
    student = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
    follower = MeanTeacher(student, 0.99)
    student = student.to(device)
    opt = torch.optim.Adam(student.parameters())
    for _ in range(2):
        loss = student(torch.randn(4, 3).to(device)).abs().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        follower.follow(student)
    return loss.item()
