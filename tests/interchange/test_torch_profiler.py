"""torch.profiler's exports: read with what they tell, and no more."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

import devtrace
from devtrace.api.results import diagnose
from devtrace.drawing.svg import timeline
from devtrace.trace.checks import broken_rule
from devtrace.words.errors import FormatError


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden: torch.Tensor = self.head(torch.relu(self.body(x)))
        return hidden


def train(steps: int = 2) -> None:
    model = Net()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        model(torch.randn(4, 8)).sum().backward()
        opt.step()


def exported(folder: Path, *, stack: bool) -> Path:
    with profile(activities=[ProfilerActivity.CPU], with_stack=stack, with_modules=stack) as profiled:
        train()
    profiled.export_chrome_trace(str(folder / "run.json"))
    return folder / "run.json"


def written(folder: Path, entries: list[Any], **keys: Any) -> Path:
    path = folder / "run.json"
    path.write_text(json.dumps({"traceEvents": entries, **keys}))
    return path


def cpu_op(name: str, ts: float, dur: float, **args: object) -> dict[str, Any]:
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": args}


def on_gpu(cat: str, name: str, **args: object) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": 7, "ts": 50, "dur": 5, "args": {"device": 0, **args}}


def test_a_profile_with_stacks_has_ops_phases_modules_calls_and_lines(tmp_path: Path) -> None:
    trace = devtrace.from_profiler(exported(tmp_path, stack=True))
    assert broken_rule(trace) is None
    assert {"aten.addmm", "aten.relu", "aten.mm"} <= {op.name for op in trace.ops}
    assert {op.phase for op in trace.ops} >= {"forward", "backward", "optimizer"}
    assert [module.path for module in trace.modules] == ["Net_0", "Net_0.Linear_0", "Net_0.Linear_1"]
    assert [call.module.path for call in trace.calls] == [module.path for module in trace.modules] * 2
    addmm = [op for op in trace.ops if op.name == "aten.addmm"]
    assert [op.module and op.module.path for op in addmm] == ["Net_0.Linear_0", "Net_0.Linear_1"] * 2
    assert {op.site and op.site.function for op in addmm} == {"forward"}
    assert {op.site and op.site.file.rsplit("/", 1)[-1] for op in addmm} == {"test_torch_profiler.py"}
    assert {op.device for op in trace.ops} == {"cpu"}


def test_a_profile_without_stacks_notes_that_lines_are_not_known(tmp_path: Path) -> None:
    trace = devtrace.from_profiler(exported(tmp_path, stack=False))
    assert broken_rule(trace) is None
    assert len(trace.ops) > 20
    assert not len(trace.calls)
    assert trace.notes[1] == "it was profiled without `with_stack=True`: neither lines nor modules are known"


def test_its_limits_are_in_the_report_and_nothing_is_found_that_is_not_there(tmp_path: Path) -> None:
    trace = devtrace.from_profiler(exported(tmp_path, stack=True))
    report = diagnose(trace)
    assert not [finding for finding in report.findings if finding.severity != "note"]
    assert "devtrace: this trace was read from torch.profiler, which records neither names nor births" in report.text
    assert timeline(trace).startswith("<svg")


def test_an_ops_device_is_that_of_the_kernel_or_copy_it_launched(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        [
            cpu_op("aten::to", 0, 9, **{"External id": 1}),
            cpu_op("aten::_to_copy", 1, 7, **{"External id": 2}),
            cpu_op("aten::empty_strided", 2, 1, **{"External id": 3}),
            cpu_op("aten::copy_", 4, 3, **{"External id": 4}),
            cpu_op("aten::addmm", 10, 5, **{"External id": 5}),
            cpu_op("aten::t", 16, 1, **{"External id": 6}),
            cpu_op("aten::mul", 20, 5, **{"External id": 7}),
            cpu_op("aten::_local_scalar_dense", 30, 5, **{"External id": 8}),
            on_gpu("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", **{"External id": 4, "bytes": 4096}),
            on_gpu("kernel", "ampere_sgemm", **{"External id": 5, "device": 1}),
            on_gpu("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", **{"External id": 8, "bytes": 4}),
            on_gpu("kernel", "of no op that is known", **{"External id": 99}),
        ],
    )
    trace = devtrace.from_profiler(path)
    assert broken_rule(trace) is None
    assert [(op.name, op.device, op.kind) for op in trace.ops] == [
        ("aten._to_copy", "cuda:0", "copy"),
        ("aten.addmm", "cuda:1", "compute"),
        ("aten.t", None, "view"),
        ("aten.mul", "cpu", "compute"),
        ("aten._local_scalar_dense", "cuda:0", "sync"),
    ]
    assert [(copy.from_, copy.to, copy.bytes, copy.pinned) for copy in trace.copies] == [
        ("cpu", "cuda:0", 4096, 0),
        ("cuda:0", "cpu", 4, 1),
    ]
    assert [op.start for op in trace.ops] == [1000, 10_000, 16_000, 20_000, 30_000]


def test_the_rank_of_the_job_is_kept(tmp_path: Path) -> None:
    path = written(
        tmp_path, [cpu_op("aten::mm", 0, 1)], distributedInfo={"backend": "nccl", "rank": 3, "world_size": 8}
    )
    assert [thread.rank for thread in devtrace.from_profiler(path).threads] == [3]


def test_a_compressed_export_is_read_as_well(tmp_path: Path) -> None:
    plain = written(tmp_path, [cpu_op("aten::mm", 0, 1)])
    packed = tmp_path / "run.json.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    trace = devtrace.from_profiler(packed)
    assert (trace.title, len(trace.ops)) == ("run", 1)


def frame(name: str, ts: float, dur: float) -> dict[str, Any]:
    return {**cpu_op(name, ts, dur), "cat": "python_function"}


COPY = {"External id": 1, "bytes": "many", "device": "x"}


@pytest.mark.parametrize(
    "entries",
    [
        [None, 3, "x", {}, {"ph": "X"}, {"ph": "X", "ts": "a", "dur": 1}, {"ph": "X", "ts": 1, "dur": float("nan")}],
        [cpu_op("aten::mm", 1e300, 1), cpu_op("aten::mm", -5, -7), cpu_op("::", 0, 0)],
        [cpu_op("aten::x", 0, 1, **{"External id": []})],
        [cpu_op("aten::mm", 0, 10), cpu_op("aten::mm", 5, 10), cpu_op("aten::mm", 7, 1)],
        [frame("nn.Module: Net_0", 0, 10), frame("nn.Module: ", 5, 10)],
        [frame("a.py(99999999999999999999): f", 0, 9), cpu_op("aten::mm", 1, 1)],
        [cpu_op("aten::mm", 0, 1, **{"External id": 1}), on_gpu("gpu_memcpy", "Memcpy HtoD", **COPY)],
        [],
    ],
)
def test_odd_entries_are_passed_over(entries: list[Any], tmp_path: Path) -> None:
    assert broken_rule(devtrace.from_profiler(written(tmp_path, entries))) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"traceEvents": 3}', "\x1f\x8bbroken", '{"format": "devtrace"}'])
def test_what_is_no_export_is_refused_in_a_sentence(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(FormatError) as caught:
        devtrace.from_profiler(path)
    assert str(caught.value).startswith("profile-foreign: got a.json (it ")
