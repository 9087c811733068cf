"""The first rank saves its weights; every rank loads them to where they were saved."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def run() -> None:
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    torch.cuda.set_device(device)
    model = nn.Linear(8, 2).to(device)
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), "model.pt")
    dist.barrier()
    state = torch.load("model.pt")
    model.load_state_dict(state)
    ddp = DistributedDataParallel(model, device_ids=[device.index])
    for _ in range(3):
        ddp(torch.randn(4, 8, device=device)).square().mean().backward()
    dist.destroy_process_group()
