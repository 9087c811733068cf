"""Rules of jobs on what no program of `programs/` has: other ends of a move, and silence on healthy jobs.

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
from failing import culprit_of

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


def test_a_sharded_module_is_moved_after_it() -> None:
    with devtrace.record("cuda:2") as recording, group("nccl"):
        model = fully_shard(nn.Sequential(nn.Linear(4, 4)))
        model(torch.ones(2, 4, device="cuda:0")).sum().backward()
        model.to("cuda:1")
        with pytest.raises((RuntimeError, AssertionError)):
            model(torch.ones(2, 4, device="cuda:0")).sum().backward()
    [finding] = [each for each in recording.report.findings if each.rule == "moved-after-wrap"]
    assert finding.message.startswith("`model` was moved to cuda:1 after fully_shard had wrapped it.")
    assert line_of(finding) == 'model.to("cuda:1")'
    assert culprit_of(finding).name.startswith("model.0.")


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


def a_wrapped_module_that_is_moved_to_be_saved() -> None:
    model = DistributedDataParallel(nn.Linear(4, 4).to("cuda:0"))
    sharded = fully_shard(nn.Linear(4, 4).to("cuda:0"))
    for _ in range(2):
        for each in (model, sharded):
            each(torch.ones(2, 4, device="cuda:0")).sum().backward()
            each.cpu()
            each.cuda()
    model.module.cpu()


def a_sharded_module_that_comes_from_meta() -> None:
    with torch.device("meta"):
        model = nn.Linear(4, 4)
    fully_shard(model).to_empty(device="cuda")
    nn.init.constant_(model.weight, 0.1)
    nn.init.constant_(model.bias, 0.1)
    model(torch.ones(2, 4, device="cuda:0")).sum().backward()


def a_second_model_that_is_moved_and_then_sharded() -> None:
    for _ in range(2):
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).to("cuda:0")
        fully_shard(model[0])
        fully_shard(model)
        model(torch.ones(2, 4, device="cuda:0")).sum().backward()


def a_module_that_is_moved_and_then_wrapped() -> None:
    model = DistributedDataParallel(nn.Linear(4, 4).to("cuda:1"))
    model.to("cuda:1")
    model(torch.ones(2, 4, device="cuda:1")).sum().backward()


@pytest.mark.parametrize(
    "program",
    [
        a_wrapped_module_that_is_moved_to_be_saved,
        a_sharded_module_that_comes_from_meta,
        a_second_model_that_is_moved_and_then_sharded,
        a_module_that_is_moved_and_then_wrapped,
    ],
)
def test_a_module_that_is_wrapped_where_it_stays_is_fine(program: Callable[[], None]) -> None:
    with devtrace.record("cuda:2") as recording, group("nccl"):
        program()
    assert not [each for each in recording.report.findings if each.rule in OF_JOBS]
