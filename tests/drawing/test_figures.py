"""Plotly figures: what is summed, and that every trace gives one."""

from __future__ import annotations

import json

import pytest
import torch

import devtrace
from devtrace.drawing.figures import FIGURES, figure
from devtrace.report.palette import Theme, shade
from devtrace.words.errors import UsageError
from samples import Sample, training
from traces import empty_trace, head_trace, odd_trace

TRACES = {"training": training(), "head": head_trace(), "odd": odd_trace(), "empty": empty_trace()}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", FIGURES)
@pytest.mark.parametrize("name", TRACES)
def test_every_trace_gives_every_figure_in_both_themes(name: str, kind: str, theme: Theme) -> None:
    drawn = figure(TRACES[name], kind, theme)
    assert drawn.layout.title.text
    assert json.loads(drawn.to_json())["layout"]["template"]


def test_devices_sums_time_by_device_and_phase_in_the_colours_of_the_palette() -> None:
    drawn = figure(training(6, failing=False), "devices")
    assert {bar.name: round(bar.x[0], 6) for bar in drawn.data} == {
        "forward": 6 * 4 * 9_000 / 1e6, "backward": 6 * 4 * 12_000 / 1e6, "optimizer": 6 * 15_000 / 1e6,
        "other": (6 * 20_000 + 2 * 30_000) / 1e6,
    }  # fmt: skip
    assert {color for bar in drawn.data for color in bar.marker.color} == {shade("cuda:0").fill}


def test_dtypes_sums_time_by_what_ops_gave_in_the_colours_of_their_devices() -> None:
    with devtrace.record("cuda:1") as recording:
        half = torch.ones(2, 3, device="cuda:0", dtype=torch.float16)
        half * 2
        torch.ones(3) * 2
    bars = {bar.name: bar for bar in recording.report.figure("dtypes").data}
    assert set(bars) == {"cpu", "cuda:0"}
    spent = {name: dict(zip(bar.y, bar.x, strict=True)) for name, bar in bars.items()}
    assert (spent["cpu"]["float16"], spent["cuda:0"]["float32"]) == (0, 0)
    assert min(spent["cpu"]["float32"], spent["cuda:0"]["float16"]) > 0
    assert bars["cuda:0"].marker.color[0] == shade("cuda:0").fill


def test_names_are_not_markup() -> None:
    sample = Sample()
    builder = sample.builder
    module = builder.append("modules", path="m.<b>x</b>", type="<i>", op=-1, ran=1)
    call = builder.append("calls", module=module, begin=0, end=1, thread=0)
    sample.op("aten.mm", "<a href='javascript:1'>", call=call)
    trace = builder.build()
    assert all(
        "<a " not in figure(trace, kind).to_json() and "<i>" not in figure(trace, kind).to_json() for kind in FIGURES
    )


def test_a_figure_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError) as caught:
        figure(empty_trace(), "pie")
    assert str(caught.value) == (
        "figure-unknown: got figure('pie'); there are 'devices' and 'dtypes'; name one of them."
    )
