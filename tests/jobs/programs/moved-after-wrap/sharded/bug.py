"""After validation on the CPU the sharded model stays there."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard


def run() -> None:
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    torch.cuda.set_device(device)
    model = fully_shard(nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 2)).to(device))
    for _ in range(2):
        model(torch.randn(4, 8, device=device)).square().mean().backward()
        model.cpu()
        print(sum(parameter.numel() for parameter in model.parameters()))
    dist.destroy_process_group()
