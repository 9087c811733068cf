"""Regions of `torch.autocast` in a trace: where each was entered and left, and which ops ran in it."""

from __future__ import annotations

import gc
import json
import threading
from pathlib import Path

import pytest
import torch
import torch._dynamo.testing
from torch import nn

import devtrace
from devtrace.api.results import Trace
from devtrace.dtypes.autocast_recorder import RecordedRegion

HALF = torch.bfloat16


def regions(trace: Trace) -> list[tuple[str, str, bool, list[str]]]:
    """Return kind, dtype, whether it casts, and the ops of each region."""
    return [
        (each.device, each.dtype, bool(each.enabled), [op.name for op in trace.ops[each.begin : each.end]])
        for each in trace.autocasts
    ]


def test_the_ops_of_a_region_are_those_between_its_lines() -> None:
    x = torch.ones(2, 2)
    with devtrace.record() as recording:
        x.add(1)
        with torch.autocast("cpu", dtype=HALF):
            x.mul(2)
        x.sub(3)
    assert regions(recording.trace) == [("cpu", "bfloat16", True, ["aten.mul.Tensor"])]
    (region,) = recording.trace.autocasts
    assert "torch.autocast(" in region.site.text  # the line, or since Python 3.12 what is within it
    assert region.left is not None
    assert region.left.line == region.site.line


def test_a_region_that_is_off_within_another_is_one_of_its_own() -> None:
    x = torch.ones(2, 2)
    with devtrace.record() as recording, torch.autocast("cpu", dtype=HALF):
        x.mul(2)
        with torch.autocast("cpu", enabled=False):
            x.sub(3)
    assert [(enabled, len(ops)) for _, _, enabled, ops in regions(recording.trace)] == [(True, 2), (False, 1)]


def test_a_region_that_is_off_within_none_and_one_without_ops_are_no_rows() -> None:
    x = torch.ones(2, 2)
    with devtrace.record() as recording:
        with torch.autocast("cpu", enabled=False):
            x.sub(3)
        with torch.autocast("cpu", dtype=HALF):
            pass
    assert regions(recording.trace) == []


def test_a_decorated_forward_pass_is_a_region_at_the_line_that_calls_it() -> None:
    class Encoder(nn.Module):
        @torch.autocast("cpu", dtype=HALF)  # type: ignore[untyped-decorator]
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.mul(2)

    encoder = Encoder()
    with devtrace.record() as recording:
        encoder(torch.ones(2))
    (region,) = recording.trace.autocasts
    assert region.site.text == "encoder(torch.ones(2))"


def test_a_recording_that_begins_and_ends_within_a_region_has_it_without_a_line() -> None:
    x = torch.ones(2, 2)
    with torch.autocast("cpu", dtype=HALF):
        with devtrace.record() as recording:
            x.mul(2)
        assert torch.is_autocast_enabled("cpu")
    (region,) = recording.trace.autocasts
    assert (region.site, region.left, region.begin, region.end) == (None, None, 0, 1)


def test_a_region_that_an_error_ends_is_left_there() -> None:
    x = torch.ones(2, 2)

    def fail() -> None:
        with torch.autocast("cpu", dtype=HALF):
            x.mul(2)
            raise RuntimeError

    with devtrace.record() as recording, pytest.raises(RuntimeError):
        fail()
    assert len(recording.trace.autocasts) == 1
    assert recording.trace.autocasts[0].left is not None
    assert not torch.is_autocast_enabled("cpu")


def test_each_thread_has_regions_of_its_own() -> None:
    x = torch.ones(2, 2)

    def work() -> None:
        with torch.autocast("cpu", dtype=HALF):
            x.mul(2)

    with devtrace.record() as recording:
        x.add(1)
        worker = threading.Thread(target=work)
        worker.start()
        worker.join()
    (region,) = recording.trace.autocasts
    assert region.thread != recording.trace.ops[0].thread


def test_regions_of_repetitions_that_were_folded_away_go_with_their_ops() -> None:
    x = torch.ones(2, 2)
    with devtrace.record(max_ops=100) as recording:
        for _ in range(20_000):
            with torch.autocast("cpu", dtype=HALF):
                x.mul(2)
        alive = sum(type(each) is RecordedRegion for each in gc.get_objects())
    assert 0 < alive < 10_000
    assert 0 < len(recording.trace.autocasts) <= len(recording.trace.ops) <= 110
    assert all(each.end > each.begin for each in recording.trace.autocasts)


def test_a_file_has_the_regions_and_one_of_before_is_read_without_them(tmp_path: Path) -> None:
    x = torch.ones(2, 2)
    with devtrace.record() as recording, torch.autocast("cpu", dtype=HALF):
        x.mul(2)
    recording.trace.save(tmp_path / "a.devtrace")
    assert regions(devtrace.load(tmp_path / "a.devtrace")) == regions(recording.trace)
    with devtrace.record() as plain:
        x.mul(2)
    saved = plain.trace.save(tmp_path / "b.devtrace")
    assert "autocasts" not in json.loads(saved.read_text())
    assert len(devtrace.load(saved).autocasts) == 0


def test_torch_has_its_own_methods_again_after_a_recording() -> None:
    before = torch.autocast.__enter__, torch.autocast.__exit__
    with devtrace.record():
        assert torch.autocast.__enter__ is not before[0]
    assert (torch.autocast.__enter__, torch.autocast.__exit__) == before


def test_a_compiled_function_with_a_region_is_compiled_once_with_and_without_a_recording() -> None:
    counts = torch._dynamo.testing.CompileCounter()

    @torch.compile(backend=counts)
    def step(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=HALF):
            return x @ x

    x = torch.ones(2, 2)
    expected = step(x)
    with devtrace.record():
        assert step(x).equal(expected)
    assert step(x).dtype == HALF
    assert counts.frame_count == 1
