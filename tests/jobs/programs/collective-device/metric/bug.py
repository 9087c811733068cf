"""The loss is averaged over all ranks from where it was logged, which is the CPU."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def run() -> None:
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    torch.cuda.set_device(device)
    model = DistributedDataParallel(nn.Linear(8, 2).to(device))
    loss = model(torch.randn(4, 8, device=device)).square().mean()
    loss.backward()
    metric = torch.tensor([loss.item(), 1.0])
    dist.all_reduce(metric)
    print((metric[0] / metric[1]).item())
    dist.destroy_process_group()
