"""The rank of a process in its job, by what launchers set, and traces that a worker function saves."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest
import torch

import devtrace
from devtrace.runtime import torch_names
from devtrace.runtime.rank import LAUNCHERS, rank_of_job

NAMES = {name for names in LAUNCHERS for name in names} | {"LOCAL_RANK", "NODE_RANK", "LOCAL_WORLD_SIZE"}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("environment", "rank"),
    [
        ("", None),
        ("RANK=3 WORLD_SIZE=8 LOCAL_RANK=3", 3),
        ("RANK=0 WORLD_SIZE=1", 0),
        ("WORLD_SIZE=4 LOCAL_RANK=1 NODE_RANK=0", 1),
        ("WORLD_SIZE=4 LOCAL_RANK=1 NODE_RANK=1 LOCAL_WORLD_SIZE=2", 3),
        ("WORLD_SIZE=4 LOCAL_RANK=1 NODE_RANK=1", None),
        ("SLURM_PROCID=5 SLURM_NTASKS=8 SLURM_LOCALID=1", 5),
        ("SLURM_PROCID=0 SLURM_NTASKS=1", None),
        ("SLURM_PROCID=0 SLURM_NTASKS=2 RANK=1 WORLD_SIZE=16", 1),
        ("OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4", 2),
        ("PMI_RANK=1 PMI_SIZE=2", 1),
        ("PMI_RANK=0 PMI_SIZE=1", None),
        ("RANK=first WORLD_SIZE=2", None),
    ],
)
def test_the_rank_is_what_the_launcher_has_set(
    environment: str, rank: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for setting in environment.split():
        monkeypatch.setenv(*setting.split("=", 1))
    assert rank_of_job() == rank


def test_a_worker_saves_its_trace_under_its_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for rank in (0, 1):
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", str(rank))
        monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
        with devtrace.record("cuda:2", save=tmp_path / "run.devtrace"):
            torch.ones(2, device=f"cuda:{rank}").add(1)
    trace = devtrace.load(*sorted(tmp_path.glob("run.rank*.devtrace")))
    assert {(op.thread.rank, op.device) for op in trace.ops} == {(0, "cuda:0"), (1, "cuda:1")}


def test_alone_it_is_the_file_that_was_named_wherever_the_program_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recording = devtrace.record("cuda:1", save="run.devtrace")
    monkeypatch.chdir("/")
    with recording:
        device_tensor = torch.ones(2, device="cuda")
        with pytest.raises(RuntimeError, match="same device"):
            device_tensor.add(torch.ones(2))
    assert len(devtrace.load(tmp_path / "run.devtrace").errors) == 1


def test_a_trace_that_cannot_be_saved_is_no_error_of_the_block(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with devtrace.record(save=tmp_path / "missing" / "run.devtrace") as recording:
        torch.ones(2)
    assert len(recording.trace.ops) == 1
    assert "the trace could not be written" in capsys.readouterr().err


@pytest.mark.parametrize("size", ["2", None])
def test_a_torch_without_what_simulated_jobs_need_is_named_in_one_sentence(
    size: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    c10d = torch.distributed.distributed_c10d
    has_nccl = torch.distributed.is_nccl_available()  # as a CUDA build has
    monkeypatch.delattr(c10d, "ProcessGroupGloo")
    torch_names.fault_of.cache_clear()
    if size:
        monkeypatch.setenv("WORLD_SIZE", size)
    with devtrace.simulate("cuda:2"):
        assert torch.ones(2, device="cuda").add(1).device.type == "cuda"
        assert torch.distributed.is_nccl_available() == has_nccl
    torch_names.fault_of.cache_clear()
    lacks = "process groups have no NCCL (torch.distributed.distributed_c10d.ProcessGroupGloo is missing)"
    printed = capsys.readouterr().err
    assert printed.startswith(f"devtrace: on torch {version('torch')} {lacks}; ") if size else not printed
