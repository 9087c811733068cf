"""A model is moved after DistributedDataParallel has wrapped it."""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import devtrace


def report():
    store = torch._C._distributed_c10d.HashStore()
    with devtrace.record("cuda:2") as recording:
        dist.init_process_group("nccl", store=store, rank=0, world_size=1)
        model = DistributedDataParallel(nn.Linear(4, 4).to("cuda:0"))
        model(torch.ones(2, 4, device="cuda:0"))
        model.to("cuda:1")
        model(torch.ones(2, 4, device="cuda:1"))
        dist.destroy_process_group()
    return recording.report
