"""A device's memory over a recording: its total as the device itself counts, and what held it."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

import devtrace
from devtrace.api.results import Trace
from devtrace.memory import lives
from devtrace.memory.lives import paired, thinned
from devtrace.runtime.observers import GIVEN_BACK
from devtrace.trace.curve import Curve
from devtrace.trace.format import decode, encode
from devtrace.trace.memory_curves import MOST_NAMES, MOST_POINTS
from devtrace.trace.subset import cut
from devtrace.trace.tables import TraceData

MIB = 1 << 20


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        added: torch.Tensor = x + self.down(torch.relu(self.up(x)))
        return added


def trained(simulate: str = "cuda:1", steps: int = 3) -> tuple[Trace, int, int]:
    """Train a small model; return the trace and what the device says: the most and the last that it held."""
    with devtrace.record(simulate=simulate) as recording:
        model = nn.Sequential(*[Residual(256) for _ in range(3)]).to("cuda")
        optimizer = torch.optim.Adam(model.parameters())
        for _ in range(steps):
            batch = torch.randn(256, 256, device="cuda")
            loss = model(batch).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        most, last = torch.cuda.max_memory_allocated(), torch.cuda.memory_allocated()
    return recording.trace, most, last


def of_kind(curve: Curve, kind: str) -> int:
    return sum(size for part, size in curve.at_peak() if part.kind == kind)


@pytest.mark.parametrize("simulate", ["cuda:1", "cuda:1,64MB"])
def test_the_peak_is_what_the_device_counts_as_its_own(simulate: str) -> None:
    trace, most, last = trained(simulate)
    [curve] = trace.memory
    assert (int(curve.total.max()), int(curve.total[-1])) == (most, last)
    assert curve.is_exact
    assert curve.limit == (64 * MIB if "," in simulate else 0)


def test_each_kind_has_the_bytes_that_the_program_gave_it() -> None:
    trace, _, _ = trained()
    [curve] = trace.memory
    weights = 3 * (2 * 256 * 512 + 512 + 256) * 4
    assert of_kind(curve, "parameter") == pytest.approx(weights, rel=0.02)
    assert of_kind(curve, "optimizer-state") == pytest.approx(2 * weights, rel=0.02)
    ends = {part.kind: part.bytes[-1] for part in curve.parts}
    assert sum(part.bytes[-1] for part in curve.parts if part.kind == "gradient") == pytest.approx(weights, rel=0.02)
    assert sum(part.bytes[-1] for part in curve.parts if part.kind == "activation") <= 2 * 512
    assert {part.name for part in curve.parts if part.kind == "parameter"} >= {"model.0", "model.1", "model.2"}
    assert "temporary" not in ends or ends["temporary"] == 0


def test_activations_fall_when_the_backward_pass_has_taken_them() -> None:
    trace, _, _ = trained(steps=1)
    [curve] = trace.memory
    activations = dict(curve.kinds)["activation"]
    phases = trace.ops.ints("phase")[np.maximum(curve.ops, 0)]
    backward = phases == trace.string_id("backward")
    assert activations.max() > 3 * 256 * 512 * 4
    assert activations[backward][-1] < activations[backward][0] / 2


def test_what_was_there_before_the_recording_counts_from_its_beginning() -> None:
    with devtrace.simulate("cuda:1"):
        table = torch.zeros(3 * MIB // 4, device="cuda")
        net = nn.Linear(1024, 512, device="cuda")
        with devtrace.record() as recording:
            seen = net(torch.ones(4, 1024, device="cuda")).sum() + table.sum()
            assert torch.cuda.max_memory_allocated() > 5 * MIB
        most = torch.cuda.max_memory_allocated()
        del seen
    [curve] = recording.trace.memory
    assert int(curve.total.max()) == most
    assert of_kind(curve, "parameter") == 1024 * 512 * 4 + 2048


def test_what_an_earlier_run_left_is_no_parameter_and_is_told_of_as_there_before() -> None:
    with devtrace.simulate("cuda:1,16MB"):
        net = nn.Linear(64, 64, device="cuda")
        left = [torch.zeros(36 * 1024, device="cuda") for _ in range(20)]
        with devtrace.record() as recording:
            left.clear()
            net(torch.ones(4, 64, device="cuda")).sum()
    [curve] = recording.trace.memory
    assert of_kind(curve, "parameter") == 64 * 64 * 4 + 512
    assert "cuda:0 held at most 2.8 MiB of 16.0 MiB, before the first op: 2.8 MiB other tensors" in str(
        recording.report
    )


def test_what_is_kept_after_its_last_use_counts_until_it_is_let_go() -> None:
    with devtrace.record(simulate="cuda:1") as recording:
        bank = [torch.ones(MIB // 4, device="cuda") for _ in range(4)]
        for _ in range(50):
            torch.ones(8, device="cuda").add_(1)
        bank.clear()
        for _ in range(50):
            torch.ones(8, device="cuda").add_(1)
    [curve] = recording.trace.memory
    middle, end = (np.searchsorted(curve.ops, op) for op in (50, 160))
    assert curve.total[middle] >= 4 * MIB
    assert curve.total[end] <= 2048


def test_storages_that_are_emptied_and_filled_again_fall_and_rise() -> None:
    with devtrace.record(simulate="cuda:1") as recording:
        shard = torch.ones(MIB, device="cuda")
        shard.untyped_storage().resize_(0)
        other = torch.ones(MIB // 4, device="cuda")
        shard.untyped_storage().resize_(4 * MIB)
        most = torch.cuda.max_memory_allocated()
        del other
    [curve] = recording.trace.memory
    assert int(curve.total.max()) == most == 5 * MIB
    assert int(curve.total[:-2].min()) < 2 * MIB or len(curve.ops) < 4


def test_a_device_with_next_to_nothing_in_it_has_no_curve() -> None:
    with devtrace.record(simulate="cuda:2") as recording:
        torch.ones(16, device="cuda:1").sum()
        kept = torch.zeros(MIB, device="cuda:0")
    assert [curve.device for curve in recording.trace.memory] == ["cuda:0"]
    assert kept.numel() == MIB


def test_of_many_layers_the_largest_are_named_and_the_rest_is_one_part() -> None:
    with devtrace.record(simulate="cuda:1") as recording:
        net = nn.Sequential(*[nn.Linear(256, 256) for _ in range(12)]).cuda()
        net(torch.ones(1, 256, device="cuda"))
    [curve] = recording.trace.memory
    parts = [part for part in curve.parts if part.kind == "parameter"]
    assert len(parts) == MOST_NAMES + 1
    assert sum(part.bytes[curve.peak] for part in parts) == 12 * (256 * 256 * 4 + 1024)


def test_a_curve_of_a_long_recording_is_bounded_and_small() -> None:
    with devtrace.record(simulate="cuda:1", max_ops=20_000) as recording:
        weight = torch.ones(512, 2048, device="cuda")
        for _ in range(3_000):
            weight.mul(2.0).add(1.0)
    trace = recording.trace
    assert all(len(curve.ops) <= MOST_POINTS for curve in trace.memory)
    assert len(json.dumps(encode(trace)["memory"])) < 6_000


def test_curves_are_read_back_as_they_were_written() -> None:
    trace, _, _ = trained("cuda:1,64MB", steps=1)
    data = json.loads(json.dumps(encode(trace)))
    [curve], [read] = trace.memory, decode(data).memory
    assert (read.device, read.limit, read.is_exact) == (curve.device, curve.limit, curve.is_exact)
    assert [(part.kind, part.name, part.bytes.tolist()) for part in read.parts] == [
        (part.kind, part.name, part.bytes.tolist()) for part in curve.parts
    ]
    assert read.ops.tolist() == curve.ops.tolist()


def test_a_trace_with_fewer_ops_keeps_its_curve_by_their_new_numbers() -> None:
    trace, _, _ = trained(steps=1)
    keep = np.zeros(len(trace.ops), dtype=bool)
    keep[::2] = True
    shorter = cut(trace, keep)
    [curve], [before] = shorter.memory, trace.memory
    assert curve.total.tolist() == before.total.tolist()
    assert int(curve.ops.min()) >= 0
    assert int(curve.ops.max()) <= len(shorter.ops)


@pytest.mark.parametrize(
    "damage",
    [
        lambda curve: curve.update(parts="all"),
        lambda curve: curve.update(parts=[["parameter"]]),
        lambda curve: curve.update(parts=[["magic", "x"]] * len(curve["parts"])),
        lambda curve: curve.update(bytes=[1, 2, 3]),
        lambda curve: curve.update(ops=[]),
    ],
)
def test_a_damaged_curve_is_refused_in_one_sentence(damage: Callable[[dict[str, object]], None]) -> None:
    trace, _, _ = trained(steps=1)
    data = json.loads(json.dumps(encode(trace)))
    damage(data["memory"][0])
    with pytest.raises(devtrace.DevtraceError, match="trace-damaged"):
        decode(data)


def test_a_thinned_log_keeps_its_heights_and_what_is_left_at_the_end() -> None:
    generator = np.random.default_rng(0)
    events, alive = [], dict[int, int]()
    for moment in range(60_000):
        owner = int(generator.integers(1, 40))
        size = GIVEN_BACK if owner in alive and generator.random() < 0.7 else int(generator.integers(1, 9)) * 512
        alive = {key: value for key, value in alive.items() if key != owner} | ({owner: size} if size > 0 else {})
        events.append((moment, owner, size, 0))
    table = np.array(events, dtype=np.int64)
    thin = thinned(table)
    assert len(thin) < len(table) / 2
    assert highest_and_last(thin) == highest_and_last(table) == (highest_and_last(table)[0], sum(alive.values()))


def highest_and_last(events: np.ndarray) -> tuple[int, int]:
    begins, ends = paired(events)
    change = np.zeros(len(events) + 1, dtype=np.int64)
    change[begins] = events[begins, 2]
    np.subtract.at(change, np.minimum(ends, len(events)), events[begins, 2])
    level = np.cumsum(change[:-1])
    return int(level.max()), int(level[-1])


def test_a_log_that_overflows_is_thinned_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lives, "MOST_EVENTS", 1 << 12)
    with devtrace.record(simulate="cuda:1", max_ops=1_000) as recording:
        kept = torch.ones(MIB, device="cuda")
        for step in range(12_000):
            torch.ones(MIB if step == 6_000 else 8, device="cuda")
        most = torch.cuda.max_memory_allocated()
    [curve] = recording.trace.memory
    assert int(curve.total.max()) == most >= 8 * MIB
    assert kept.numel() == MIB


def test_nothing_lives_longer_because_its_memory_is_watched() -> None:
    collected = []
    with devtrace.record(simulate="cuda:1,64MB", memory=True) as recording:
        for _ in range(100):
            made = torch.ones(MIB // 16, device="cuda")
            collected.append(weakref.ref(made.untyped_storage()))
            del made
            assert collected[-1]() is None
        before = len(gc.get_objects())
        for _ in range(1_000):
            torch.ones(8, device="cuda")
        assert len(gc.get_objects()) - before < 100
    assert recording.trace.memory == () or recording.trace.memory[0].is_exact


def test_without_a_simulation_no_memory_of_the_cpu_is_shown() -> None:
    with devtrace.record() as recording:
        torch.ones(2 * MIB).sum()
    trace: TraceData = recording.trace
    assert trace.memory == ()
    assert "memory" not in encode(trace)
