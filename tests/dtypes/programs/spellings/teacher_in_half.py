# wrong-dtype, t, float16
import torch
from torch import nn


class Distiller(nn.Module):
    def __init__(self, student, teacher):
        super().__init__()
        self.student, self.teacher = student, teacher
        self.adapt = nn.Linear(6, 4)
    def forward(self, x):
        s = self.student(x)
        with torch.no_grad():
            t = self.teacher(x.half())  # born
        return ((self.adapt(t) - s) ** 2).mean()  # failed


def run(device):
    torch.manual_seed(0)
    teacher = nn.Sequential(nn.Linear(3, 6), nn.Tanh()).half().eval()
    d = Distiller(nn.Linear(3, 4), teacher)
    loss = d(torch.randn(5, 3))
    loss.backward()
    return loss.item()
