"""Jobs of two and four ranks on simulated devices: the values of the same job on the CPU, and NCCL's refusals.

A job runs all that it is given of `job_of_ranks`; each test asks what became of one check.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from folders import TESTS
from job_of_ranks import CHECKS

pytestmark = pytest.mark.slow

Results = list[dict[str, dict[str, str]]]

# Threads of gloo's want Python to let go of the last tensors, and the program's own thread does not let them have it.
ENDS_AT_ONCE = """
import sys
sys.setswitchinterval(1000)
import devtrace
devtrace.simulate("cuda:2").start()
import torch
import torch.distributed as dist
dist.init_process_group("nccl", store=dist.HashStore(), rank=0, world_size=1)
tensors = [torch.ones(3, device="cuda") for _ in range(64)]
for tensor in tensors:
    dist.all_gather([torch.empty(3, device="cuda")], tensor, async_op=True)
"""


@pytest.fixture(scope="module")
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, str]:
    folder = tmp_path_factory.mktemp("job")
    script = TESTS / "harness" / "job_of_ranks.py"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    got = subprocess.run(
        [sys.executable, str(script), str(folder), str(request.param)],
        env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    files = [folder / f"{rank}.json" for rank in range(request.param)]
    assert all(file.exists() for file in files), got.stderr
    return [json.loads(file.read_text()) for file in files], got.stderr


OF_FOUR = pytest.param(4, marks=pytest.mark.another)
of_both = pytest.mark.parametrize("job", [2, OF_FOUR], indirect=True, scope="module")


@of_both
@pytest.mark.parametrize("kind", ["simulated", "recorded"])
@pytest.mark.parametrize("name", CHECKS)
def test_a_job_on_simulated_devices_has_the_values_of_the_same_job_on_the_cpu(
    kind: str, name: str, job: tuple[Results, Any]
) -> None:
    assert {rank[kind][name] for rank in job[0]} == {"equal"}


@of_both
def test_a_job_of_ddp_on_gloo_has_the_values_of_the_cpu(job: tuple[Results, Any]) -> None:
    assert {found for rank in job[0] for found in rank["gloo"].values()} == {"equal"}


@of_both
def test_a_healthy_job_raises_no_alarm(job: tuple[Results, Any]) -> None:
    assert [rank["found"] for rank in job[0]] == [{}] * len(job[0])


@of_both
@pytest.mark.parametrize("name", ["a_tensor_on_the_cpu", "a_tensor_on_the_cpu_for_a_functional_collective"])
def test_nccl_refuses_a_tensor_on_the_cpu(name: str, job: tuple[Results, Any]) -> None:
    words = "RuntimeError: No backend type associated with device type cpu"
    assert {rank["refused"][name] for rank in job[0]} == {words}


@of_both
@pytest.mark.parametrize("name", ["all_ranks_on_one_device", "a_model_of_ddp_of_all_ranks_on_one_device"])
def test_nccl_refuses_ranks_that_share_a_device(name: str, job: tuple[Results, Any]) -> None:
    for number, rank in enumerate(job[0]):
        words = f"Duplicate GPU detected : rank {number} and rank {0 if number else 1} both on CUDA device 0"
        assert words in rank["refused"][name]


@of_both
def test_a_group_with_a_backend_for_each_takes_tensors_on_both(job: tuple[Results, Any]) -> None:
    each = {"a_tensor_on_the_cpu": "no error", "collectives": "no error"}
    assert [rank["both"] for rank in job[0]] == [each] * len(job[0])


@of_both
def test_the_first_rank_writes_once_a_simulation_that_gloo_does_the_work_of_nccl(job: tuple[Any, str]) -> None:
    assert job[1].count("devtrace: simulated devices use `gloo`") == 3


@pytest.mark.parametrize("end", ["", "dist.destroy_process_group()"])
def test_a_program_may_end_with_its_last_collective(end: str) -> None:
    got = subprocess.run(
        [sys.executable, "-c", ENDS_AT_ONCE + end], capture_output=True, text=True, timeout=300, check=False
    )
    assert (got.returncode, "terminate called" in got.stderr) == (0, False), got.stderr
