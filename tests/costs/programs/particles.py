"""Particles move by their nearest distance, without any training."""

import torch


def run(device):
    torch.manual_seed(0)
    at, speed = torch.rand(32, 2, device=device), torch.randn(32, 2, device=device)
    #1> picked = torch.where(~torch.eye(32, dtype=torch.bool, device=device))
    for _ in range(60):
        gap = torch.cdist(at, at)
        others = ~torch.eye(32, dtype=torch.bool, device=device)  # -1
        near = gap[others].min()  # 1
        #1> near = gap[picked].min()
        rate = torch.as_tensor(0.01).to(device)  # 2
        #2> rate = 0.01
        at = at + speed * rate * near
    return at.tolist()
