"""Rules of jobs on what no program of `programs/` has, and silence on healthy jobs.

The ranks of a job run one after the other in this process; a rule sees their traces merged, as from files.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import devtrace
from devtrace.diagnosis.findings import Finding
from devtrace.features import offers
from devtrace.jobs.merge import merge

fully_shard: Any = importlib.import_module("torch.distributed.fsdp").fully_shard
Program = Callable[[int], object]
OF_JOBS = {*offers("job rule")} | {"collective-device"}


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
