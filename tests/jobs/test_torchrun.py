"""Jobs of several processes on loopback: DDP on gloo, simulated devices, a trace for each rank, one report of all."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import devtrace
from devtrace.api.results import diagnose
from devtrace.jobs.launched import Job
from devtrace.runtime.rank import ranked_path
from failing import culprit_of
from folders import TESTS
from warm import LIMIT

pytestmark = pytest.mark.slow

TRAIN = """
import os, pathlib, signal, sys, torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

failing, how = int(sys.argv[1]), sys.argv[2]


def leave_after_it():
    # A process that ends closes the connection that the other one waits at.
    while not pathlib.Path(f"train.rank{failing}.devtrace").exists():
        pass
    sys.exit(1)


dist.init_process_group("gloo")
rank = dist.get_rank()
device = torch.device("cuda", rank)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
ddp = DistributedDataParallel(model, device_ids=[rank])
for step in range(3):
    x = torch.randn(4, 8, device=device)
    out = ddp(x)
    if step == 2 and how == "hangs":
        if rank == failing:
            pathlib.Path("hangs").touch()
            dist.recv(torch.empty(1, device=device), 0)
        if rank == 0:
            while not pathlib.Path("hangs").exists():
                pass
            signal.signal(signal.SIGTERM, lambda *_: leave_after_it())
            os.kill(os.getppid(), signal.SIGTERM)
            signal.pause()
    if step == 2 and how == "killed" and rank == failing:
        os.kill(os.getpid(), signal.SIGKILL)
    if step == 2 and how == "fails" and rank == failing:
        mask = torch.ones(2)
        out = out * mask
    out.sum().backward()
dist.barrier()
print("done")
dist.destroy_process_group()
"""


def torchrun(folder: Path, ranks: int, failing: int = -1, how: str = "") -> subprocess.CompletedProcess[str]:
    (folder / "train.py").write_text(TRAIN)
    return job(folder, ranks, "train.py", str(failing), how)


def job(folder: Path, ranks: int, *program: str) -> subprocess.CompletedProcess[str]:
    """Run a program with flags of devtrace's, or without, in each rank."""
    launcher = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={ranks}"]
    each = ["-m", "devtrace", "run", "--simulate", f"cuda:{ranks}", *program]
    # A rank that saves is not killed for being slow.
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": str(LIMIT)}
    with socket.socket() as kept:  # until the job has ended: no other process is given its port meanwhile
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # the job itself may take it
        kept.bind(("127.0.0.1", 0))
        address = ["--master-addr=127.0.0.1", f"--master-port={kept.getsockname()[1]}"]
        return subprocess.run(
            [*launcher, *address, *each],
            cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False,
        )  # fmt: skip


def test_two_ranks_that_work_are_saved_by_themselves_and_load_as_one_trace(tmp_path: Path) -> None:
    got = torchrun(tmp_path, 2)
    assert (got.returncode, got.stdout.count("done")) == (0, 2)
    of_ranks, _, of_job = got.stderr.partition("\nthe job:\n")
    assert ("✓" in of_ranks, of_job.count("✓")) == (False, 1)
    files = sorted(tmp_path.glob("train.rank*.devtrace"))
    assert [file.name for file in files] == ["train.rank0.devtrace", "train.rank1.devtrace"]
    trace = devtrace.load(*files)
    assert {op.thread.rank for op in trace.ops if op.device == "cuda:0"} == {0}
    assert {op.thread.rank for op in trace.ops if op.device == "cuda:1"} == {1}
    assert not [finding for finding in diagnose(trace).findings if finding.severity != "note"]


def test_of_a_job_in_which_one_rank_fails_every_rank_is_saved_and_the_report_names_that_rank(tmp_path: Path) -> None:
    ranks = 2
    got = torchrun(tmp_path, ranks, 1, "fails")
    assert got.returncode == 1
    files = sorted(tmp_path.glob("train.rank*.devtrace"))
    assert len(files) == ranks, got.stderr
    report = diagnose(devtrace.load(*files))
    [finding] = [finding for finding in report.findings if finding.severity == "error"]
    assert finding.message.startswith("On rank 1: `mask` is on cpu")
    assert finding.rule == "device-mismatch"
    assert culprit_of(finding).name == "mask"
    assert report.trace.ops[finding.op].thread.rank == 1
    assert {thread.rank for thread in report.trace.threads} == set(range(ranks))


CHECKPOINT = """
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("nccl")
rank = dist.get_rank()
torch.cuda.set_device(rank)
net = nn.Linear(8, 2).cuda()
if rank == 0:
    torch.save({"net": net.state_dict()}, "last.pt")
dist.barrier()
saved = torch.load("last.pt")
net.load_state_dict(saved["net"])
ddp = DistributedDataParallel(net, device_ids=[rank])
for _ in range(2):
    ddp(torch.randn(4, 8, device=rank)).mean().backward()
dist.destroy_process_group()
"""


@pytest.mark.breadth
def test_a_bug_that_only_four_ranks_together_show_fails_the_job_with_its_line_in_every_form(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CHECKPOINT)
    line = CHECKPOINT.splitlines().index('saved = torch.load("last.pt")') + 1
    got = job(tmp_path, 4, "--fail-on", "warning", "--json", "a.json", "--sarif", "a.sarif", "train.py")
    assert got.returncode == 1
    of_ranks, _, of_job = got.stderr.partition("\nthe job:\n")
    assert ("✓" in of_ranks, "✓" in of_job) == (False, False)
    assert f'train.py line {line}   saved = torch.load("last.pt")' in of_job
    whole, log = (json.loads((tmp_path / name).read_text()) for name in ("a.json", "a.sarif"))
    alarms = [each for each in whole["findings"] if each["level"] != "note"]
    results = log["runs"][0]["results"]
    assert [(each["rule"], each["level"], each["site"]["line"]) for each in alarms] == [("rank-device", "error", line)]
    assert [(each["ruleId"], each["level"]) for each in results] == [("rank-device", "error")]
    assert results[0]["locations"][0]["physicalLocation"]["region"]["startLine"] == line


@pytest.mark.breadth
def test_of_a_job_in_which_one_rank_is_killed_the_others_are_saved_and_all_is_not_clear(tmp_path: Path) -> None:
    got = torchrun(tmp_path, 3, 1, "killed")
    assert got.returncode == 1
    files = sorted(tmp_path.glob("train.rank*.devtrace"))
    assert [file.name for file in files] == ["train.rank0.devtrace", "train.rank2.devtrace"], got.stderr
    assert "(ranks 0, 2)" in devtrace.load(*files).title
    assert "✓" not in got.stderr


@pytest.mark.breadth
def test_of_a_job_in_which_one_rank_hangs_all_are_saved_with_what_ended_it(tmp_path: Path) -> None:
    got = torchrun(tmp_path, 3, 1, "hangs")
    assert got.returncode != 0
    files = sorted(tmp_path.glob("train.rank*.devtrace*"))
    assert [file.name for file in files] == [f"train.rank{rank}.devtrace" for rank in range(3)], got.stderr
    assert any("SIGTERM ended it" in note for note in devtrace.load(*files).notes)


def test_ranks_of_another_machine_are_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    job = Job(tmp_path / "run.devtrace", size=2, began=0.0)
    devtrace.load(TESTS / "golden" / "empty.devtrace").save(ranked_path(job.trace, 0))
    report = job.report("ended", lambda: pytest.fail("it waits for rank 1"))
    assert report is not None
    assert not report.trace.all_clear
