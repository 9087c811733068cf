"""A trace as PyTorch's own memory_viz reads it, by the reader of the torch that is installed."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.cuda import _memory_viz

import devtrace
from devtrace.api.results import Trace
from samples import training
from traces import empty_trace, head_trace, odd_trace

MIB = 1 << 20


def snapshot(trace: Trace, folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = pickle.loads(trace.to_memory_viz(folder / "memory.pickle").read_bytes())
    return read


def highest(events: list[dict[str, Any]]) -> int:
    """Return the most that is there at once, asking on the way that what ends is there."""
    there: dict[int, int] = {}
    most = 0
    for event in events:
        if event["action"] == "alloc":
            assert event["addr"] not in there
            there[event["addr"]] = event["size"]
        elif event["action"] == "free_completed":
            assert there.pop(event["addr"]) == event["size"]
        most = max(most, sum(there.values()))
    return most


@pytest.fixture(scope="module")
def recorded() -> Trace:
    with devtrace.record(simulate="cuda:2") as recording:
        net = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).to("cuda:1")
        adam = torch.optim.Adam(net.parameters())
        for _ in range(2):
            adam.zero_grad()
            net(torch.ones(1024, 512, device="cuda:1")).square().mean().backward()
            adam.step()
    return recording.trace


def test_a_device_is_numbered_as_the_program_numbers_it(recorded: Trace, tmp_path: Path) -> None:
    first, second = snapshot(recorded, tmp_path)["device_traces"]
    assert first == []
    assert second
    assert {segment["device"] for segment in snapshot(recorded, tmp_path)["segments"]} == {1}


def test_the_most_that_is_there_at_once_is_what_the_device_counted(recorded: Trace, tmp_path: Path) -> None:
    peak = int(recorded.memory[0].total.max())
    _, events = snapshot(recorded, tmp_path)["device_traces"]
    assert highest(events) == peak
    _, events = snapshot(devtrace.load(recorded.save(tmp_path / "a.devtrace")), tmp_path)["device_traces"]
    assert peak / 2 < highest(events) <= peak  # until the last use, at the least


def test_a_block_has_its_module_its_line_and_what_it_is_for(recorded: Trace, tmp_path: Path) -> None:
    _, events = snapshot(recorded, tmp_path)["device_traces"]
    begun = [event for event in events if event["action"] == "alloc"]
    kinds = Counter(event["category"] for event in begun)
    assert kinds["parameter"] == 4
    assert kinds["activation"] > 0
    made = [[frame["name"] for frame in event["frames"]] for event in begun if event["category"] == "activation"]
    assert any("aten.addmm" in names and "module net.2" in names and "recorded" in names for names in made)
    assert any(frame["filename"] == __file__ and frame["line"] > 0 for event in begun for frame in event["frames"])


def test_what_stays_is_in_the_segments_and_all_else_has_ended(recorded: Trace, tmp_path: Path) -> None:
    found = snapshot(recorded, tmp_path)
    left = {block["address"] for segment in found["segments"] for block in segment["blocks"]}
    actions = {action: {e["addr"] for e in found["device_traces"][1] if e["action"] == action} for action in (
        "alloc", "free_requested", "free_completed",
    )}  # fmt: skip
    assert actions["free_requested"] == actions["free_completed"]
    assert actions["alloc"] - actions["free_completed"] == left


@pytest.mark.parametrize("trace", [training(), head_trace(), odd_trace(), empty_trace()], ids=str)
def test_torchs_own_reader_reads_any_trace(trace: Any, tmp_path: Path) -> None:
    found = snapshot(Trace.of(trace), tmp_path)
    assert _memory_viz.segsum(found).startswith("Summary of segments")
    listed = _memory_viz.trace(found)
    assert listed.count("# free completed") == sum(
        event["action"] == "free_completed" for events in found["device_traces"] for event in events
    )
    assert "memory_viz" in _memory_viz.trace_plot(found) or "MemoryViz" in _memory_viz.trace_plot(found)


def test_torchs_own_reader_makes_a_flame_graph_of_what_stays(recorded: Trace, tmp_path: Path) -> None:
    flames = _memory_viz.memory(snapshot(recorded, tmp_path), format_flamegraph=str)
    assert "recorded" in flames
    assert "active_allocated" in flames
