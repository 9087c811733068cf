"""A teacher that follows its student by how far it is away, with noise that is made on the CPU."""

import torch
from torch import nn
from torch.nn import functional as F


def run(device):
    torch.manual_seed(0)
    student, teacher = nn.Linear(8, 8).to(device), nn.Linear(8, 8).to(device)
    opt = torch.optim.SGD(student.parameters(), lr=0.1)
    for _ in range(16):
        x = torch.randn(8, 8, device=device)
        offset = torch.zeros(8, 8)  # -2
        #2> offset = torch.zeros(8, 8, device=device)
        offset[:2] = 1
        loss = F.mse_loss(student(x + offset.to(device)), teacher(x).detach())  # 2
        #2> loss = F.mse_loss(student(x + offset), teacher(x).detach())
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            for t, s in zip(teacher.parameters(), student.parameters()):
                gap = (t - s).norm().item()  # 1
                #1> gap = (t - s).norm()
                t.add_(s - t, alpha=gap / (1 + gap))  # -1
                #1> t.add_((s - t) * (gap / (1 + gap)))
    return teacher.weight.tolist()
