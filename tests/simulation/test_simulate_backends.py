"""Backends of process groups live as long as their simulation: one that ends waits for threads that wait for Python."""

from __future__ import annotations

import gc
import weakref

import torch
import torch.distributed as dist

import devtrace


def test_a_backend_outlives_its_group_until_the_simulation_ends() -> None:
    with devtrace.simulate("cuda:1"):
        store = torch._C._distributed_c10d.HashStore()
        dist.init_process_group("cpu:gloo,cuda:nccl", store=store, rank=0, world_size=1)
        group = dist.distributed_c10d._get_default_group()
        backends = [weakref.ref(group._get_backend(torch.device(kind))) for kind in ("cpu", "cuda")]
        dist.destroy_process_group()
        del group
        gc.collect()
        assert [kept() is not None for kept in backends] == [True, True]
    gc.collect()
    assert [kept() for kept in backends] == [None, None]
