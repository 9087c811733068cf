"""A helper moves the model to the GPU that it was asked for, after DDP has wrapped it on another."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def run() -> None:
    rank = int(os.environ["LOCAL_RANK"])
    dist.init_process_group("cpu:gloo,cuda:nccl")
    torch.cuda.set_device(rank)
    model = DistributedDataParallel(nn.Linear(8, 2))
    model.to(rank)
    for _ in range(3):
        model(torch.randn(4, 8, device=rank)).square().mean().backward()
    dist.destroy_process_group()
