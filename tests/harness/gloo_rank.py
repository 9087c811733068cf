"""One process of a job on gloo, in a module that a new process finds by its own name, whatever else is called tests."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
from torch import distributed as dist
from torch import nn

import devtrace


def run_rank(rank: int, meeting: str, simulated: bool, results: Any) -> None:
    """One process of a DistributedDataParallel job on gloo."""
    with devtrace.simulate("cuda:2") if simulated else nullcontext():
        device = f"cuda:{rank}" if simulated else "cpu"
        if simulated:
            torch.cuda.set_device(rank)
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Linear(8, 2)).to(device)
        net = nn.parallel.DistributedDataParallel(model, device_ids=[rank] if simulated else None)
        update = torch.optim.SGD(net.parameters(), lr=0.1, foreach=False)
        torch.manual_seed(rank)
        for _ in range(2):
            loss = net(torch.randn(6, 4)).pow(2).mean()  # a host batch: DDP moves it
            update.zero_grad()
            loss.backward()
            update.step()
        devices = {str(t.device) for t in (loss, *(p.grad for p in model.parameters())) if t is not None}
        total = torch.ones(2, device=device) * rank
        dist.all_reduce(total)
        results.put((rank, device, devices, total.tolist(), [p.flatten().tolist() for p in model.parameters()]))
        dist.destroy_process_group()
