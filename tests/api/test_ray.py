"""Jobs of Ray Train: two workers on simulated devices, whose function records itself.

`make ray` installs ray[train] beside .venv and runs this.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

import devtrace
import ray_job
from failing import culprit_of

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(find_spec("ray") is None, reason="ray[train] is not installed: `make ray` does it"),
]


def test_each_worker_saves_its_trace_under_its_rank(tmp_path: Path) -> None:
    ray_job.run(tmp_path, healthy=True)
    files = sorted(tmp_path.glob("run.rank*.devtrace"))
    assert [file.name for file in files] == ["run.rank0.devtrace", "run.rank1.devtrace"]
    trace = devtrace.load(*files)
    assert {(op.thread.rank, op.device) for op in trace.ops if op.device != "cpu"} == {(0, "cuda:0"), (1, "cuda:1")}
    assert [each for each in devtrace.diagnose(trace).findings if each.severity != "note"] == []


def test_the_worker_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="same device"):
        ray_job.run(tmp_path, healthy=False)
    trace = devtrace.load(*sorted(tmp_path.glob("run.rank*.devtrace")))
    [error] = [each for each in devtrace.diagnose(trace).findings if each.severity == "error"]
    assert (culprit_of(error).name, trace.ops[error.op].thread.rank) == (
        "mask",
        0,
    )  # Ray may kill the other before it saves
