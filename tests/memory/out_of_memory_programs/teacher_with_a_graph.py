"""A student learns from a teacher whose graph is kept, though no optimizer trains it."""

import torch
from torch import nn
from torch.nn import functional


def mlp(width: int, depth: int) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Linear(64, width), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, 20))


def distill(teacher: nn.Module, student: nn.Module, device: str) -> float:
    teacher.eval()
    optimizer = torch.optim.SGD(student.parameters(), lr=0.01)
    for _ in range(3):
        x = torch.randn(1024, 64, device=device)
        soft = functional.softmax(teacher(x) / 2, dim=-1)
        loss = functional.kl_div(functional.log_softmax(student(x) / 2, dim=-1), soft, reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return float(loss)


def run(device: str) -> float:
    return distill(mlp(512, 8).to(device), mlp(256, 1).to(device), device)
