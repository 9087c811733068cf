"""Jobs of several ranks with a bug: the merged report names ranks, tensor and lines, and the fix silences it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from corpus_programs import assert_explains
from devtrace.features import offers
from devtrace.runtime.requirements import release_of
from folders import TESTS
from goldens import assert_golden
from job_programs import JOBS, run_job
from programs import Program
from warm import Warm

pytestmark = [pytest.mark.slow, pytest.mark.one_in(4)]

ALL = [Program(path) for path in sorted(JOBS.glob("*/*/bug.py"))]
each = pytest.mark.parametrize("job", ALL, ids=lambda job: f"{job.cause}/{job.name}")
RULES = {*offers("job rule")} | {"collective-device"}


def assert_reads_like(job: Program, name: str, text: str) -> None:
    """Hold a report equal to its golden, but for how many operators a newer torch's fully_shard runs."""
    if release_of(torch.__version__) > (2, 13):
        assert (job.folder / name).read_text(encoding="utf-8").startswith(text.rpartition("\n\n")[0])
    else:
        assert_golden(f"{job.folder.relative_to(TESTS)}/{name}", f"{text}\n", TESTS)


def test_each_rule_of_jobs_has_a_job() -> None:
    assert {job.cause for job in ALL} == RULES


@each
def test_the_merged_report_finds_the_bug(job: Program, warm: Warm) -> None:
    report = run_job(warm, job)
    [finding] = [finding for finding in report.findings if finding.rule in RULES]
    assert job.expected.keys() == {"rule", "cause", "culprit", "devices", "failed", "who", "ranks"}
    assert_explains(finding, job.expected["cause"], job.expected)
    assert_reads_like(job, "report.txt", report.text)


@each
def test_the_merged_report_in_chinese_reads_like_its_golden(job: Program, warm: Warm) -> None:
    assert_reads_like(job, "report.zh.txt", run_job(warm, job, "zh").text)


@each
def test_the_fixed_job_raises_no_alarm(job: Program, warm: Warm, tmp_path: Path) -> None:
    assert run_job(warm, job.with_fix(tmp_path)).alarms == []
