# stale-copy, teacher.0.weight, float32
import torch
import torch.nn.functional as F
from torch import nn
import copy


class Distill:
    def __init__(self, student):
        self.student = student
        self.teacher = copy.deepcopy(student).eval()  # born
    def loss(self, x):
        with torch.no_grad():
            wanted = self.teacher(x)  # failed
        return F.mse_loss(self.student(x), wanted)


def run(device):
    torch.manual_seed(0)
    student = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))
    job = Distill(student)
    teacher = job.teacher
    student.bfloat16()
    return job.loss(torch.randn(6, 4).bfloat16()).float().item() + 1
