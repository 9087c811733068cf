"""A job of several ranks: each way of torch.distributed on the CPU, then on simulated devices, alone and recorded.

    python job_of_ranks.py RESULTS RANKS [CHECK ...]

Writes for each rank what became of each check, of all without names: "equal", or what differs.
"""

from __future__ import annotations

import datetime
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing
from torch.distributed.algorithms.join import Join
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FullyShardedDataParallel,
    MixedPrecisionPolicy,
    OffloadPolicy,
)
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor, ones, zeros
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

import devtrace
from devtrace.runtime.requirements import release_of

functional: Any = importlib.import_module("torch.distributed._functional_collectives")
checkpoint: Any = importlib.import_module("torch.distributed.checkpoint")
fully_shard: Any = importlib.import_module("torch.distributed.fsdp").fully_shard

Tensors = Sequence[torch.Tensor]
Check = Callable[[torch.device], Tensors]
PATIENCE = datetime.timedelta(seconds=60)
ranks = dist.get_world_size
CHECKS: dict[str, Check] = {}
REFUSED: dict[str, Check] = {}


def check(job: Check) -> Check:
    CHECKS[job.__name__] = job
    return job


def refused(job: Check) -> Check:
    REFUSED[job.__name__] = job
    return job


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))


def batch(device: torch.device, rank: int | None = None) -> torch.Tensor:
    seed = torch.Generator().manual_seed(dist.get_rank() if rank is None else rank)
    return torch.randn(4, 8, generator=seed).to(device)


def train(model: nn.Module, device: torch.device, optimizer: torch.optim.Optimizer | None = None) -> list[torch.Tensor]:
    """Return two losses and what the parameters became."""
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=0.1)
    losses = []
    for _ in range(2):
        loss = model(batch(device)).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return losses + whole(model.parameters(), device)


def whole(values: Iterable[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    moved = [value.detach().to(device) for value in values]
    return [value.full_tensor() if isinstance(value, DTensor) else value for value in moved]


def gradients(model: nn.Module, device: torch.device) -> list[torch.Tensor]:
    return whole((parameter.grad for parameter in model.parameters() if parameter.grad is not None), device)


def sharded(device: torch.device, **policy: Any) -> nn.Sequential:
    model = network().to(device)
    for layer in (model[0], model[2]):
        fully_shard(layer, **policy)
    fully_shard(model, **policy)
    return model


def shared_folder() -> str:
    folder: list[Any] = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder, src=0)
    return str(folder[0])


def ddp(device: torch.device) -> DistributedDataParallel:
    return DistributedDataParallel(network().to(device), device_ids=[device.index] if device.type == "cuda" else None)


@check
def ddp_of_batches_on_the_cpu(device: torch.device) -> Tensors:
    """Let DDP move the batches to the device."""
    model, total = ddp(device), torch.full((2,), float(dist.get_rank()), device=device)
    loss = model(batch(torch.device("cpu"))).square().mean()
    loss.backward()
    dist.all_reduce(total)
    assert {each.device for each in (loss, *(parameter.grad for parameter in model.parameters()))} == {device}
    return [loss.detach(), total, *gradients(model, device)]


@check
def ddp_with_no_sync(device: torch.device) -> Tensors:
    model = ddp(device)
    trained = train(model, device)
    with model.no_sync():
        model(batch(device)).sum().backward()
    alone = [gradient.clone() for gradient in gradients(model, device)]
    model(batch(device)).sum().backward()
    return [*trained, *alone, *gradients(model, device)]


@check
def ddp_with_join(device: torch.device) -> Tensors:
    model = DistributedDataParallel(network().to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with Join([model]):
        for _ in range(2 + dist.get_rank()):
            model(batch(device)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    return whole(model.parameters(), device)


@check
def ddp_with_buffers_and_a_sharded_optimizer(device: torch.device) -> Tensors:
    torch.manual_seed(0)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)).to(device))
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
    return [*train(model, device, optimizer), *whole(model.buffers(), device)]


@check
def batch_norm_over_all_ranks(device: torch.device) -> Tensors:
    """On the CPU, which has no SyncBatchNorm, each rank computes the batch of all. The last rank has a smaller one."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)).to(device)
    everything = torch.cat([batch(device, rank) for rank in range(ranks())])[:-1]
    weight = torch.arange(float(everything.numel()), device=device).view_as(everything)
    mine = slice(4 * dist.get_rank(), 4 * dist.get_rank() + 4)
    if device.type == "cpu":
        out = model(everything)
        (out * weight).sum().backward()
        return [out[mine].detach(), *whole(model.buffers(), device), *gradients(model, device)]
    model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    out = model(everything[mine])
    (out * weight[mine]).sum().backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
    return [out.detach(), *whole(model.buffers(), device), *gradients(model, device)]


@check
def fully_sharded_with_clipping(device: torch.device) -> Tensors:
    model = sharded(device)
    trained = train(model, device)
    model(batch(device)).sum().backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    return [*trained, *whole([norm], device), *gradients(model, device)]


@check
def fully_sharded_in_mixed_precision(device: torch.device) -> Tensors:
    return train(sharded(device, mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.float32)), device)


@check
def fully_sharded_with_parameters_on_the_cpu(device: torch.device) -> Tensors:
    model = sharded(device, offload_policy=CPUOffloadPolicy() if device.type == "cuda" else OffloadPolicy())
    assert {parameter.device.type for parameter in model.parameters()} == {"cpu"}
    return train(model, device)


@check
def fully_sharded_with_checkpointing(device: torch.device) -> Tensors:
    model = network().to(device)
    apply_activation_checkpointing(model, check_fn=lambda module: isinstance(module, nn.Linear))
    return train(fully_shard(model), device)


@check
def fully_sharded_from_meta(device: torch.device) -> Tensors:
    with torch.device("meta"):
        model = network()
    fully_shard(model).to_empty(device=device)
    for parameter in model.parameters():
        nn.init.constant_(parameter, 0.01)
    return train(model, device)


@check
def fully_sharded_in_its_first_version(device: torch.device) -> Tensors:
    """On the CPU, which the first version refuses, the second one."""
    model = network().to(device)
    return train(fully_shard(model) if device.type == "cpu" else FullyShardedDataParallel(model), device)[:2]


@check
def a_distributed_tensor(device: torch.device) -> Tensors:
    mesh = init_device_mesh(device.type, (ranks(),))
    rows: Any = distribute_tensor(torch.arange(48.0).view(8, 6).to(device), mesh, [Shard(0)])
    weight = distribute_tensor(torch.arange(24.0).view(6, 4).to(device), mesh, [Replicate()])
    product = rows @ weight
    made: Any = zeros(4, 4, device_mesh=mesh, placements=[Shard(0)]) + ones(
        4, 4, device_mesh=mesh, placements=[Shard(1)]
    )
    assert rows.device.type == rows.to_local().device.type == made.to_local().device.type == device.type
    return [product.to_local(), *whole([product, product.sum(), rows.redistribute(mesh, [Shard(1)]), made], device)]


@check
def a_mesh_of_two_dimensions(device: torch.device) -> Tensors:
    mesh = init_device_mesh(device.type, (2, ranks() // 2), mesh_dim_names=("data", "model"))
    value = distribute_tensor(torch.arange(16.0).view(4, 4).to(device), mesh, [Shard(0), Shard(1)])
    return whole([value, value.sum(), value * mesh["data"].size()], device)


@check
def tensor_parallel(device: torch.device) -> Tensors:
    mesh = init_device_mesh(device.type, (ranks(),))
    return train(
        parallelize_module(network().to(device), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()}), device
    )


@check
def sequence_parallel(device: torch.device) -> Tensors:
    model = nn.Sequential(nn.LayerNorm(8), *network()).to(device)
    plan = {
        "0": SequenceParallel(),
        "1": ColwiseParallel(input_layouts=Shard(1)),
        "3": RowwiseParallel(output_layouts=Shard(1)),
    }
    parallelize_module(model, init_device_mesh(device.type, (ranks(),)), plan)
    out = model(batch(device, 0).view(1, 4, 8).chunk(ranks(), 1)[dist.get_rank()])
    out.sum().backward()
    return [*whole([out], device), *gradients(model, device)]


@check
def parallel_loss(device: torch.device) -> Tensors:
    plan: Any = {
        "0": ColwiseParallel(output_layouts=Replicate()),
        "2": ColwiseParallel(output_layouts=Shard(-1), use_local_output=False),
    }
    model = parallelize_module(network().to(device), init_device_mesh(device.type, (ranks(),)), plan)
    with loss_parallel():
        loss = nn.functional.cross_entropy(model(batch(device, 0)), torch.arange(4, device=device))
        loss.backward()
    return [*whole([loss], device), *gradients(model, device)]


@check
def tensor_parallel_and_fully_sharded(device: torch.device) -> Tensors:
    mesh = init_device_mesh(device.type, (ranks() // 2, 2), mesh_dim_names=("data", "model"))
    model = parallelize_module(network().to(device), mesh["model"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return train(fully_shard(model, mesh=mesh["data"]), device)


def piped(schedule: Any, device: torch.device) -> list[torch.Tensor]:
    losses: list[torch.Tensor] = []
    if dist.get_rank() == 0:
        schedule.step(batch(device, 0))
    elif dist.get_rank() == ranks() - 1:
        schedule.step(target=torch.zeros(4, 8, device=device), losses=losses)
    else:
        schedule.step()
    return losses


def layer_of_pipeline(number: int) -> nn.Linear:
    torch.manual_seed(number)
    return nn.Linear(8, 8)


@check
def a_pipeline_with_a_stage_a_rank(device: torch.device) -> Tensors:
    got = []
    for kind in (ScheduleGPipe, Schedule1F1B):
        layers = nn.Sequential(layer_of_pipeline(dist.get_rank()), nn.ReLU()).to(device)
        stage = PipelineStage(layers, dist.get_rank(), ranks(), device)
        got += piped(kind(stage, ranks(), loss_fn=nn.functional.mse_loss), device) + gradients(layers, device)
    return got


@check
def a_pipeline_with_two_stages_a_rank(device: torch.device) -> Tensors:
    numbers = (dist.get_rank(), dist.get_rank() + ranks())
    mine = {number: layer_of_pipeline(number).to(device) for number in numbers}
    stages: list[Any] = [PipelineStage(layer, number, 2 * ranks(), device) for number, layer in mine.items()]
    got = piped(ScheduleInterleaved1F1B(stages, ranks(), loss_fn=nn.functional.mse_loss), device)
    return got + [gradient for layer in mine.values() for gradient in gradients(layer, device)]


@check
def a_checkpoint_of_a_sharded_model(device: torch.device) -> Tensors:
    folder = shared_folder()
    model = sharded(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    train(model, device, optimizer)
    state = get_state_dict(model, optimizer)
    checkpoint.save({"model": state[0], "optimizer": state[1]}, checkpoint_id=folder)
    second = sharded(device)
    later = torch.optim.AdamW(second.parameters(), lr=0.1)
    into = get_state_dict(second, later)
    checkpoint.load({"model": into[0], "optimizer": into[1]}, checkpoint_id=folder)
    set_state_dict(second, later, model_state_dict=into[0], optim_state_dict=into[1])
    saved: dict[str, Any] = get_model_state_dict(
        second, options=StateDictOptions(full_state_dict=True, cpu_offload=True)
    )
    assert {value.device.type for value in saved.values()} <= {"cpu"}
    return [*train(second, device, later), *(value.to(device) for value in saved.values())]


@check
def a_checkpoint_that_is_saved_meanwhile(device: torch.device) -> Tensors:
    folder, model = shared_folder(), sharded(device)
    group = dist.new_group(backend="gloo")
    checkpoint.async_save({"model": model.state_dict()}, checkpoint_id=folder, process_group=group).result()
    state = {"model": sharded(device).state_dict()}
    checkpoint.load(state, checkpoint_id=folder)
    return whole(state["model"].values(), device)


@check
def collectives(device: torch.device) -> Tensors:
    rank, got = dist.get_rank(), []
    values = 2 * ranks()

    def mine() -> torch.Tensor:
        return torch.arange(float(values), device=device) + rank

    def parts() -> list[torch.Tensor]:
        return list(mine().chunk(ranks()))

    def room(count: int) -> torch.Tensor:
        got.append(torch.empty(count, device=device))
        return got[-1]

    def rooms(count: int) -> list[torch.Tensor]:
        return [room(count) for _ in range(ranks())]

    def kept(value: torch.Tensor) -> torch.Tensor:
        got.append(value)
        return value

    for reduction in (dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.AVG):
        dist.all_reduce(kept(mine()), op=reduction)
    dist.all_reduce(kept(mine()), async_op=True).wait()
    dist.broadcast(kept(mine()), 1)
    dist.all_gather(rooms(values), mine())
    dist.all_gather_into_tensor(room(values * ranks()), mine())
    dist.reduce_scatter_tensor(room(2), mine())
    dist.reduce_scatter(room(2), parts())
    dist.all_to_all_single(room(values), mine())
    if release_of(torch.__version__) >= (2, 13):  # an older gloo has none
        dist.all_to_all(rooms(2), parts())
    dist.scatter(room(2), parts() if rank == 0 else None)
    dist.gather(mine(), rooms(values) if rank == 0 else None)
    dist.send(mine(), rank + 1) if rank % 2 == 0 else dist.recv(room(values), rank - 1)
    after, before = (rank + 1) % ranks(), (rank - 1) % ranks()
    both = [dist.P2POp(dist.isend, mine(), after), dist.P2POp(dist.irecv, room(values), before)]
    for request in dist.batch_isend_irecv(both):
        request.wait()
    dist.barrier()
    assert {value.device for value in got} == {device}
    objects: list[Any] = [None] * ranks()
    dist.all_gather_object(objects, {"rank": rank, "value": mine()})
    return [*got, *(entry["value"] for entry in objects)]


@check
def functional_collectives(device: torch.device) -> Tensors:
    value = torch.arange(2.0 * ranks(), device=device) + dist.get_rank()
    world = dist.group.WORLD
    got = [
        functional.wait_tensor(each)
        for each in (
            functional.all_reduce(value, "avg", world),
            functional.all_gather_tensor(value, 0, world),
            functional.reduce_scatter_tensor(value, "sum", 0, world),
        )
    ]
    assert {each.device for each in got} == {device}
    return got


@refused
def a_tensor_on_the_cpu(device: torch.device) -> Tensors:
    value = torch.ones(2)
    dist.all_reduce(value)
    return [value]


@refused
def a_tensor_on_the_cpu_for_a_functional_collective(device: torch.device) -> Tensors:
    return [functional.wait_tensor(functional.all_reduce(torch.ones(2), "sum", dist.group.WORLD))]


@refused
def all_ranks_on_one_device(device: torch.device) -> Tensors:
    value = torch.ones(2, device="cuda:0")
    dist.all_reduce(value, group=dist.new_group(backend="nccl"))
    return [value]


@refused
def a_model_of_ddp_of_all_ranks_on_one_device(device: torch.device) -> Tensors:
    return list(
        DistributedDataParallel(nn.Linear(2, 2).to("cuda:0"), process_group=dist.new_group(backend="nccl")).parameters()
    )


OTHERWISE_SUMMED = (batch_norm_over_all_ranks, fully_sharded_in_its_first_version)
"""Whose sums on the CPU are in another order."""


def difference(expected: Tensors, got: Tensors, exact: bool) -> str:
    if len(expected) != len(got):
        return f"{len(got)} values instead of {len(expected)}"
    for number, (one, other) in enumerate(zip(expected, got, strict=True)):
        other = other.detach().cpu()
        if not (torch.equal(one, other) if exact else torch.allclose(one, other, atol=1e-4)):
            return f"value {number} is {other} instead of {one}"
    return "equal"


def outcome(job: Check, device: torch.device, expected: Tensors | None = None) -> str:
    try:
        got = job(device)
    except Exception as error:  # noqa: BLE001 (its name and words are the result)
        return f"{type(error).__name__}: {error}"
    return "no error" if expected is None else difference(expected, got, job not in OTHERWISE_SUMMED)


@contextmanager
def job_of(backend: str, file: str) -> Iterator[None]:
    rank, count = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    dist.init_process_group(backend, f"file://{file}", PATIENCE, count, rank)
    yield
    dist.destroy_process_group()


def run(rank: int, count: int, checks: dict[str, Check], folder: str) -> dict[str, dict[str, str]]:
    os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count)}
    torch.set_num_threads(1)
    with job_of("gloo", f"{folder}/cpu"):
        expected = {name: [value.detach() for value in job(torch.device("cpu"))] for name, job in checks.items()}
    results = {}
    device = torch.device("cuda", rank)
    recording = devtrace.record(f"cuda:{count}")
    devices: dict[str, Any] = {"simulated": devtrace.simulate(f"cuda:{count}"), "recorded": recording}
    for kind, on in devices.items():
        with on, job_of("nccl", f"{folder}/{kind}"):
            torch.cuda.set_device(rank)
            results[kind] = {name: outcome(job, device, expected[name]) for name, job in checks.items()}
            if kind == "simulated":
                results["refused"] = {name: outcome(job, device) for name, job in REFUSED.items()}
    results["found"] = {found.rule: found.message for found in recording.report.findings if found.severity != "note"}
    with devtrace.simulate(f"cuda:{count}"), job_of("gloo", f"{folder}/gloo"):
        torch.cuda.set_device(rank)
        of_ddp = [name for name in checks if name.startswith("ddp")]
        results["gloo"] = {name: outcome(checks[name], device, expected[name]) for name in of_ddp}
    with devtrace.simulate(f"cuda:{count}"), job_of("cpu:gloo,cuda:nccl", f"{folder}/both"):
        results["both"] = {job.__name__: outcome(job, device) for job in (a_tensor_on_the_cpu, collectives)}
    return results


def fork(count: int) -> tuple[int, list[int]]:
    """Return which rank this process is now; the first has the others for children."""
    children = []
    for rank in range(1, count):
        child = os.fork()
        if not child:
            return rank, []
        children.append(child)
    return 0, children


def main(into: Path, count: int, names: Sequence[str]) -> None:
    folder = tempfile.mkdtemp()
    checks = {name: CHECKS[name] for name in names or CHECKS}
    rank, children = fork(count)
    (into / f"{rank}.json").write_text(json.dumps(run(rank, count, checks, folder)))
    sys.stdout.flush()
    for child in children:
        os.waitpid(child, 0)
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
