import torch
from torch import nn


def power_iteration(weight, steps):
    def normalize(v):
        return v / (v.norm() + 1e-9)

    def one_step(v):
        return normalize(weight @ normalize(weight.t() @ v))

    v = torch.randn(weight.shape[0])
    for _ in range(steps):
        v = one_step(v)
    return v @ weight @ normalize(weight.t() @ v)


def run(device):
    model = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3)).to(device)
    x = torch.randn(2, 5, device=device)
    penalty = sum(power_iteration(m.weight, 3) for m in model if isinstance(m, nn.Linear))
    loss = model(x).pow(2).mean() + 0.01 * penalty
    loss.backward()
