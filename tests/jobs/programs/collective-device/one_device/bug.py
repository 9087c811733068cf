"""No rank sets its device, so that all of them count on the first GPU, and NCCL wants one for each."""

import torch
import torch.distributed as dist


def run() -> None:
    dist.init_process_group("nccl")
    seen = torch.ones(1, device="cuda")
    dist.all_reduce(seen)
    print(seen.item())
    dist.destroy_process_group()
