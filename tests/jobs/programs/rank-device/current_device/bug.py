"""Metrics are summed on "the" GPU, and no rank has set which one that is."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def run() -> None:
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(8, 2).to(device))
    total = torch.zeros(2).cuda()
    for _ in range(4):
        loss = model(torch.randn(4, 8, device=device)).square().mean(0)
        loss.sum().backward()
        total += loss.detach().to(total.device)
    print(total.tolist())
    dist.destroy_process_group()
