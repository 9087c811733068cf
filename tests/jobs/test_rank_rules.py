"""Rules of jobs: what only the ranks together show, each on a job that has its bug, and silence on healthy ones.

The ranks of a job run one after the other in this process; a rule sees their traces merged, as from files.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import devtrace
from devtrace.diagnosis.findings import Finding
from devtrace.features import offers
from devtrace.jobs.merge import merge
from failing import birth_of, culprit_of

fully_shard: Any = importlib.import_module("torch.distributed.fsdp").fully_shard
Program = Callable[[int], object]
OF_JOBS = {*offers("job rule")} | {"collective-device", "moved-after-wrap"}


def found(program: Program, monkeypatch: pytest.MonkeyPatch, ranks: int = 2, devices: int = 4) -> list[Finding]:
    """Return what the merged report of a job has of jobs, or as an error."""
    traces = []
    for rank in range(ranks):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", str(ranks))
        with devtrace.record(devices) as recording:
            program(rank)
        traces.append(recording.trace)
    report = devtrace.diagnose(merge(traces))
    return [finding for finding in report.findings if finding.rule in OF_JOBS or finding.severity == "error"]


def the_finding(program: Program, monkeypatch: pytest.MonkeyPatch, ranks: int = 2) -> Finding:
    [finding] = found(program, monkeypatch, ranks)
    return finding


def line_of(finding: Finding) -> str:
    assert finding.site is not None
    return Path(finding.site.file).read_text().splitlines()[finding.site.line - 1].strip()


@contextmanager
def group(backend: str) -> Iterator[None]:
    store: Any = torch._C._distributed_c10d.HashStore()
    dist.init_process_group(backend, store=store, rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def work(rank: int) -> torch.Tensor:
    """Work enough on the rank's own device that it is its own."""
    model = nn.Linear(4, 4).to(f"cuda:{rank}")
    for _ in range(3):
        model(torch.ones(2, 4, device=f"cuda:{rank}")).sum().backward()
    return model.weight


def batches_for_one_device(rank: int) -> None:
    work(rank)
    for _ in range(3):
        batch = torch.ones(2, 4).to("cuda:0")
        batch.add(1)


def the_current_device(rank: int) -> None:
    work(rank)
    total = torch.zeros(3, device="cuda")
    total.add_(1)


def healthy_ranks_on_several_machines(rank: int) -> None:
    work(rank % 2)


def healthy_ranks_with_two_devices_each(rank: int) -> None:
    work(2 * rank)
    weight = work(2 * rank + 1)
    weight.detach().to(f"cuda:{2 * rank}").add(1)


def healthy_ranks_that_see_one_device(rank: int) -> None:
    work(0)
    torch.zeros(3, device="cuda").add_(1)


def healthy_ranks_that_set_their_device(rank: int) -> None:
    torch.cuda.set_device(rank)
    work(rank)
    torch.zeros(3, device="cuda").add_(1)


def test_batches_that_all_ranks_send_to_one_device(monkeypatch: pytest.MonkeyPatch) -> None:
    finding = the_finding(batches_for_one_device, monkeypatch, 3)
    assert (finding.rule, finding.devices) == ("rank-device", ("cuda:0", "cuda:1", "cuda:2"))
    assert finding.message == (
        "Ranks 1 and 2 put a tensor on cuda:0, the device of rank 0. The line names cuda:0 for every rank."
    )
    assert culprit_of(finding).name == "batch"
    assert line_of(finding) == 'batch = torch.ones(2, 4).to("cuda:0")'


def test_a_rank_that_has_not_set_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    finding = the_finding(the_current_device, monkeypatch)
    assert finding.message.startswith("Rank 1 puts a tensor on cuda:0, the device of rank 0. Without a number")
    assert finding.help == "call `torch.cuda.set_device(local_rank)` at the start of the program"
    assert culprit_of(finding).name == "total"
    assert line_of(finding) == 'total = torch.zeros(3, device="cuda")'


def test_a_checkpoint_that_every_rank_loads_to_one_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "model.pt"
    with devtrace.simulate("cuda:1"):
        torch.save({"weight": torch.ones(4, device="cuda:0")}, file)

    def resume(rank: int) -> None:
        weight = work(rank)
        state = torch.load(file)
        weight.data[0] = state["weight"].to(weight.device)

    finding = the_finding(resume, monkeypatch)
    assert "`torch.load` without `map_location`" in finding.message
    assert culprit_of(finding).name == "state"
    assert line_of(finding) == "state = torch.load(file)"


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.register_buffer("scale", torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.inner(x) * self.scale.to(x.device))


def test_a_buffer_that_only_one_rank_left_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    def program(rank: int) -> None:
        model = Scaled().to(f"cuda:{rank}")
        if rank == 1:
            model.scale = model.scale.cpu()
        model(torch.ones(2, 4, device=f"cuda:{rank}"))

    finding = the_finding(program, monkeypatch, 3)
    assert finding.rule == "ranks-differ"
    assert finding.message == "`model.scale` is on cpu in rank 1, and on a GPU in the others."
    assert line_of(finding) == "model.scale = model.scale.cpu()"


@pytest.mark.parametrize(
    "program",
    [
        healthy_ranks_on_several_machines,
        healthy_ranks_with_two_devices_each,
        healthy_ranks_that_see_one_device,
        healthy_ranks_that_set_their_device,
    ],
)
def test_a_healthy_job_has_no_finding(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(program, monkeypatch, 4, 8) == []


def test_nccl_is_given_a_tensor_of_the_cpu() -> None:
    with devtrace.record("cuda:1") as recording, group("nccl"):
        loss = torch.ones(())
        with pytest.raises(RuntimeError, match="No backend type"):
            dist.all_reduce(loss)
    [finding] = recording.report.findings
    assert (finding.rule, finding.cause, finding.devices) == ("collective-device", "created-without-device", ("cpu",))
    assert finding.message == "`loss` is on cpu, and NCCL sends only what is on a GPU."
    assert birth_of(finding).text == "loss = torch.ones(())"
    assert line_of(finding) == "dist.all_reduce(loss)"


def test_a_module_is_moved_after_ddp_has_wrapped_it() -> None:
    with devtrace.record("cuda:2") as recording, group("nccl"):
        model = DistributedDataParallel(nn.Linear(4, 4).to("cuda:0"))
        model(torch.ones(2, 4, device="cuda:0"))
        model.to("cuda:1")
        model(torch.ones(2, 4, device="cuda:1"))
    [finding] = [each for each in recording.report.findings if each.rule == "moved-after-wrap"]
    assert finding.message.startswith("`model` was moved to cuda:1 after DistributedDataParallel had wrapped it.")
    assert line_of(finding) == 'model.to("cuda:1")'


@pytest.mark.parametrize("end", ["device", "cpu"])
def test_a_sharded_module_is_moved_after_it(end: str) -> None:
    with devtrace.record("cuda:2") as recording, group("nccl"):
        model = fully_shard(nn.Sequential(nn.Linear(4, 4)))
        model(torch.ones(2, 4, device="cuda:0")).sum().backward()
        model.to("cuda:1" if end == "device" else "cpu")
        with pytest.raises((RuntimeError, AssertionError)):
            model(torch.ones(2, 4, device="cuda:0")).sum().backward()
    [finding] = [each for each in recording.report.findings if each.rule == "moved-after-wrap"]
    where = "cuda:1" if end == "device" else "cpu"
    assert finding.message.startswith(f"`model` was moved to {where} after fully_shard had wrapped it.")
    assert line_of(finding) == 'model.to("cuda:1" if end == "device" else "cpu")'
    assert culprit_of(finding).name.startswith("model.0.")


def test_a_wrapped_module_that_is_moved_to_be_saved_is_fine() -> None:
    with devtrace.record("cuda:1") as recording, group("nccl"):
        model = DistributedDataParallel(nn.Linear(4, 4).to("cuda:0"))
        sharded = fully_shard(nn.Linear(4, 4).to("cuda:0"))
        for _ in range(2):
            for each in (model, sharded):
                each(torch.ones(2, 4, device="cuda:0")).sum().backward()
                each.cpu()
                each.cuda()
        model.module.cpu()
    assert not [each for each in recording.report.findings if each.rule in OF_JOBS]


def test_a_sharded_module_that_comes_from_meta_is_fine() -> None:
    with devtrace.record("cuda:1") as recording, group("nccl"):
        with torch.device("meta"):
            model = nn.Linear(4, 4)
        fully_shard(model).to_empty(device="cuda")
        nn.init.constant_(model.weight, 0.1)
        nn.init.constant_(model.bias, 0.1)
        model(torch.ones(2, 4, device="cuda:0")).sum().backward()
    assert not [each for each in recording.report.findings if each.rule in OF_JOBS]


def test_a_second_model_that_is_moved_and_then_sharded_is_fine() -> None:
    with devtrace.record("cuda:1") as recording, group("nccl"):
        for _ in range(2):
            model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).to("cuda:0")
            fully_shard(model[0])
            fully_shard(model)
            model(torch.ones(2, 4, device="cuda:0")).sum().backward()
    assert not [each for each in recording.report.findings if each.rule in OF_JOBS]


def test_of_two_sharded_models_the_one_that_is_moved_after_it_is_named() -> None:
    with devtrace.record("cuda:2") as recording, group("nccl"):
        first = fully_shard(nn.Linear(4, 4).to("cuda:0"))
        first(torch.ones(2, 4, device="cuda:0")).sum().backward()
        second = fully_shard(nn.Linear(4, 4).to("cuda:0"))
        second(torch.ones(2, 4, device="cuda:0")).sum().backward()
        second.to("cuda:1")
        with pytest.raises((RuntimeError, AssertionError)):
            second(torch.ones(2, 4, device="cuda:0")).sum().backward()
    [finding] = [each for each in recording.report.findings if each.rule == "moved-after-wrap"]
    assert finding.message.startswith("`second` was moved to cuda:1 after fully_shard had wrapped it.")


def test_a_module_that_is_moved_and_then_wrapped_is_fine() -> None:
    with devtrace.record("cuda:2") as recording, group("nccl"):
        model = DistributedDataParallel(nn.Linear(4, 4).to("cuda:1"))
        model.to("cuda:1")
        model(torch.ones(2, 4, device="cuda:1")).sum().backward()
    assert not [each for each in recording.report.findings if each.rule in OF_JOBS]
