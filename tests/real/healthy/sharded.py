"""Parameters sharded over a mesh of one device, by fully_shard, and a tensor distributed by hand."""

import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor


def run(device):
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=0, world_size=1)
        try:
            mesh = init_device_mesh(torch.device(device).type, (1,))
            net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(device)
            fully_shard(net, mesh=mesh)
            optimizer = torch.optim.AdamW(net.parameters())
            for _ in range(2):
                optimizer.zero_grad()
                loss = net(torch.ones(3, 4, device=device)).square().sum()
                loss.backward()
                optimizer.step()
            rows = distribute_tensor(torch.rand(4, 4).to(device), mesh, [Shard(0)])
            return loss, (rows @ rows).full_tensor()
        finally:
            dist.destroy_process_group()
