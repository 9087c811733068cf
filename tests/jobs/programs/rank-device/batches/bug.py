"""Every rank sends its batches to the first GPU, which was right as long as there was one."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def run() -> None:
    rank = int(os.environ["LOCAL_RANK"])
    dist.init_process_group("nccl")
    torch.cuda.set_device(rank)
    model = DistributedDataParallel(nn.Linear(8, 2).to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(24, 8))
    for (batch,) in DataLoader(data, 4, sampler=DistributedSampler(data)):
        images = batch.to("cuda:0")
        images = images / 255
        loss = model(images.to(rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()
