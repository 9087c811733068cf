"""Jobs of several ranks: with a bug, on what no program of `programs/` has, and healthy ones.

The ranks of a job that is no program run one after the other in this process; a rule sees their traces merged, as from
files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import devtrace
from corpus_programs import assert_explains
from devtrace.diagnosis.findings import Finding
from devtrace.features import offers
from devtrace.jobs.merge import merge
from devtrace.runtime.requirements import release_of
from folders import TESTS
from goldens import assert_golden
from job_programs import JOBS, run_job
from programs import Program
from warm import Warm

Rank = Callable[[int], object]
OF_JOBS = {*offers("job rule")} | {"collective-device"}


def found(program: Rank, monkeypatch: pytest.MonkeyPatch, ranks: int = 2, devices: int = 4) -> list[Finding]:
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
def test_a_healthy_job_has_no_finding(program: Rank, monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(program, monkeypatch, 4, 8) == []


ALL = [Program(path) for path in sorted(JOBS.glob("*/*/bug.py"))]


def each(test: Callable[..., None]) -> Callable[..., None]:
    """Ask a test of every job of `programs/`."""
    of_all = pytest.mark.parametrize("job", ALL, ids=lambda job: f"{job.cause}/{job.name}")
    marked: Callable[..., None] = pytest.mark.slow(pytest.mark.one_in(4)(of_all(test)))
    return marked


def assert_reads_like(job: Program, name: str, text: str) -> None:
    """Hold a report equal to its golden, but for how many operators a newer torch's fully_shard runs."""
    if release_of(torch.__version__) > (2, 13):
        assert (job.folder / name).read_text(encoding="utf-8").startswith(text.rpartition("\n\n")[0])
    else:
        assert_golden(f"{job.folder.relative_to(TESTS)}/{name}", f"{text}\n", TESTS)


def test_each_rule_of_jobs_has_a_job() -> None:
    assert {job.cause for job in ALL} == OF_JOBS


@each
def test_the_merged_report_finds_the_bug(job: Program, warm: Warm) -> None:
    report = run_job(warm, job)
    [finding] = [finding for finding in report.findings if finding.rule in OF_JOBS]
    assert job.expected.keys() == {"rule", "cause", "culprit", "devices", "failed", "who", "ranks"}
    assert_explains(finding, job.expected["cause"], job.expected)
    assert_reads_like(job, "report.txt", report.text)


@each
def test_the_merged_report_in_chinese_reads_like_its_golden(job: Program, warm: Warm) -> None:
    assert_reads_like(job, "report.zh.txt", run_job(warm, job, "zh").text)


@each
def test_the_fixed_job_raises_no_alarm(job: Program, warm: Warm, tmp_path: Path) -> None:
    assert run_job(warm, job.with_fix(tmp_path)).alarms == []
