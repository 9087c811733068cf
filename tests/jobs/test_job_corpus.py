"""Jobs of several ranks with a bug: the merged report names ranks, tensor and lines, and the fix silences it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from corpus_programs import at
from devtrace.features import offers
from devtrace.runtime.requirements import release_of
from folders import TESTS
from goldens import assert_golden
from job_programs import JOBS, Job, run_job
from warm import Warm

pytestmark = [pytest.mark.slow, pytest.mark.one_in(4)]

ALL = [Job(path.parent) for path in sorted(JOBS.glob("*/*/bug.py"))]
each = pytest.mark.parametrize("job", ALL, ids=lambda job: job.name)
RULES = {*offers("job rule")} | {"collective-device", "moved-after-wrap"}


@pytest.fixture(scope="module")
def warm() -> Iterator[Warm]:
    with Warm() as python:
        yield python


def assert_reads_like(golden: str, text: str) -> None:
    """Hold a report equal to its golden, but for how many operators a newer torch's fully_shard runs."""
    if release_of(torch.__version__) > (2, 13):
        assert (TESTS / golden).read_text(encoding="utf-8").startswith(text.rpartition("\n\n")[0])
    else:
        assert_golden(golden, f"{text}\n", TESTS)


def test_each_rule_of_jobs_has_a_job() -> None:
    assert {job.folder.parent.name for job in ALL} == RULES


@each
def test_the_merged_report_finds_the_bug(job: Job, warm: Warm) -> None:
    report = run_job(warm, job.folder / "bug.py", job.expected["ranks"])
    [finding] = [finding for finding in report.findings if finding.rule in RULES]
    assert finding.culprit is not None
    assert {
        "rule": finding.rule,
        "cause": finding.cause,
        "culprit": finding.culprit.name,
        "devices": list(finding.devices),
        "failed": at(finding.site),
        "who": re.findall(r"(?:On all \d ranks|[Rr]anks? \d(?: and \d)*)", finding.message)[0],
    } == {key: value for key, value in job.expected.items() if key != "ranks"}
    assert_reads_like(f"jobs/programs/{job.name}/report.txt", report.text)


@each
def test_the_merged_report_in_chinese_reads_like_its_golden(job: Job, warm: Warm) -> None:
    report = run_job(warm, job.folder / "bug.py", job.expected["ranks"], "zh")
    assert_reads_like(f"jobs/programs/{job.name}/report.zh.txt", report.text)


@each
def test_the_fixed_job_raises_no_alarm(job: Job, warm: Warm, tmp_path: Path) -> None:
    assert run_job(warm, job.with_fix(tmp_path), job.expected["ranks"]).alarms == []
