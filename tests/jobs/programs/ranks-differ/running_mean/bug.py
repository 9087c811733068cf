"""The rank that writes the checkpoint takes the running mean to the CPU, and leaves it there."""

import os

import torch
import torch.distributed as dist
from torch import nn


class Centered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(8, 2)
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x - self.mean.to(x.device))


def run() -> None:
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    torch.cuda.set_device(device)
    model = Centered().to(device)
    for _ in range(3):
        x = torch.randn(4, 8, device=device)
        model(x).square().mean().backward()
        if dist.get_rank() == 0:
            model.mean = model.mean.cpu()
            print(model.mean.tolist())
    dist.destroy_process_group()
