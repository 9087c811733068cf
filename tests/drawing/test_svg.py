"""The static picture: drawn from any trace, of presentation attributes only, bounded."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import devtrace
from devtrace.drawing.lanes import LONGEST_SHARE, Scale, lanes
from devtrace.drawing.picture import MOST_LANES
from devtrace.drawing.svg import GUTTER, SMALL, WIDE, timeline
from devtrace.jobs.merge import merge, with_rank
from devtrace.report import palette
from devtrace.trace.tables import TraceData
from goldens import assert_golden
from samples import Sample, training
from traces import empty_trace, head_trace, odd_trace

PRESENTATION = {
    "xmlns", "x", "y", "width", "height", "viewBox", "preserveAspectRatio", "overflow", "role", "aria-label",
    "rx", "cx", "cy", "r", "d", "fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity",
    "stroke-dasharray", "opacity", "font-family", "font-size", "font-weight",
    "text-anchor", "visibility",
}  # fmt: skip


def texts(svg: str) -> list[str]:
    return [found.text or "" for found in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def many_lanes(devices: int, threads: int) -> TraceData:
    sample = Sample()
    for number in range(devices):
        sample.op("aten.mm", f"cuda:{number}")
    for number in range(threads):
        sample.op("aten.mm", "cpu", thread=sample.builder.append("threads", name=f"Thread-{number}", rank=-1))
    return sample.builder.build()


@pytest.mark.parametrize("trace", [training(), training(400), head_trace(), odd_trace(), many_lanes(300, 100)])
def test_the_picture_is_well_formed_and_of_presentation_attributes_only(trace: TraceData) -> None:
    root = ElementTree.fromstring(timeline(trace))
    tags = {found.tag.removeprefix("{http://www.w3.org/2000/svg}") for found in root.iter()}
    assert tags <= {"svg", "rect", "path", "circle", "text"}
    assert {name for found in root.iter() for name in found.attrib} <= PRESENTATION


def test_the_picture_of_the_head_that_was_left_behind() -> None:
    assert_golden("timeline-head.svg", timeline(head_trace()).replace("><", ">\n<") + "\n")


def test_an_op_that_failed_before_it_had_a_device_has_no_picture() -> None:
    with pytest.raises(AssertionError), devtrace.record() as recording:
        torch.ones(2, device="cuda")
    assert len(recording.trace.ops) == 1
    assert timeline(recording.trace) == ""
    assert set(recording.report._repr_mimebundle_()[0]) > {"text/html", "text/plain"}


def test_a_trace_without_ops_has_no_picture() -> None:
    assert timeline(empty_trace()) == ""


def test_the_worst_finding_is_flagged_with_its_op_its_devices_and_its_tensor() -> None:
    shown = texts(timeline(head_trace()))
    assert "addmm · cuda:0 + cpu" in shown
    assert "model.out_head.weight" in shown


def test_devices_of_one_hue_differ_by_their_letters_too() -> None:
    """In print, and for readers who see no colour: each of eight CUDA devices has a letter and a name at its lane."""
    found = texts(timeline(many_lanes(8, 0)))
    assert [text for text in found if re.fullmatch(r"G\d|cuda:\d", text)] == [
        text for number in range(8) for text in (f"G{number}", f"cuda:{number}")
    ]


def test_a_value_read_on_the_cpu_waits_for_no_device() -> None:
    sample = Sample()
    for device in ("cpu", "cpu", "cuda:0"):
        sample.op("aten._local_scalar_dense", device, kind="sync")
    assert any("1 sync " in text for text in texts(timeline(sample.builder.build())))


def test_copies_from_pinned_memory_are_counted() -> None:
    sample = Sample()
    for pinned in (1, 0, 1):
        op = sample.op("aten._to_copy", "cuda:0", kind="copy")
        row = {"from": sample.device("cpu"), "to": sample.device("cuda:0"), "pinned": pinned, "non_blocking": 1}
        sample.builder.append("copies", op=op, bytes=8, **row)
    assert any("3 copies, 24 B · 2 from pinned memory" in text for text in texts(timeline(sample.builder.build())))


def test_a_picture_of_a_long_trace_stays_small() -> None:
    trace = training(2000)
    assert len(trace.ops) > 20_000
    assert len(timeline(trace)) < 20_000


def test_of_many_lanes_the_busiest_are_shown_and_the_rest_counted() -> None:
    svg = timeline(many_lanes(300, 10_000))
    assert f"{300 + 10_000 - MOST_LANES:,} more lanes" in svg
    assert len(svg) < 20_000


def test_the_lane_of_a_finding_is_always_shown() -> None:
    sample = Sample()
    for number in range(30):
        for _ in range(5):
            sample.op("aten.mm", f"cuda:{number}")
    failed = sample.op("aten.addmm", "mps")
    sample.builder.findings = ({"severity": "error", "op": failed, "devices": ["mps", "cpu"]},)
    assert "mps" in texts(timeline(sample.builder.build()))


def test_names_are_text_whatever_they_contain() -> None:
    sample = Sample()
    sample.op("aten.<script>alert(1)</script>", "<img src=x>", 10**6)
    sample.op("x" * 1_000_000, "\ud800\u202e", 10**6)
    svg = timeline(sample.builder.build())
    assert "<script" not in svg
    assert "<img" not in svg
    assert "\u202e" not in svg
    assert len(svg.encode()) < 20_000


def test_a_long_wait_is_shortened_and_shows_how_long_it_was() -> None:
    sample = Sample()
    for _ in range(50):
        sample.op("aten.mm", "cpu")
    sample.clock += 10**12
    sample.op("aten.mm", "cpu")
    trace = sample.builder.build()
    [cut] = Scale(trace).cuts
    assert cut.nanoseconds == 10**12 + 2_000
    assert cut.end - cut.begin == pytest.approx(LONGEST_SHARE, rel=0.01)
    assert "shortened, up to 16 min 40 s" in timeline(trace)


def test_a_device_that_only_gave_a_copy_has_a_lane_for_the_arrow() -> None:
    trace = training(1)
    assert [trace.devices[lane.device].name for lane in lanes(trace)] == ["cpu", "cuda:0"]
    assert re.search(r"98\.3 KB", timeline(trace))


def test_of_copies_between_the_same_lanes_at_one_moment_only_one_has_a_label() -> None:
    sample = Sample()
    sample.op("aten.mm", "cpu", 1_000)
    moment = sample.clock
    there = sample.op("aten._to_copy", "cuda:0", 1_000)
    sample.clock = moment
    back = sample.op("aten._to_copy", "cpu", 1_000)
    sample.op("aten.mm", "cuda:0", 10**7)
    for op, ends, size in ((there, ("cpu", "cuda:0"), 98_300), (back, ("cuda:0", "cpu"), 1_500)):
        source, to = map(sample.device, ends)
        sample.builder.append("copies", op=op, to=to, bytes=size, pinned=0, non_blocking=0, **{"from": source})
    picture = timeline(sample.builder.build())
    assert ">98.3 KB<" in picture
    assert ">1.5 KB<" not in picture


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(-1, 10**12)), min_size=1, max_size=40))
def test_positions_keep_the_order_of_moments_and_fill_the_width(times: list[tuple[int, int]]) -> None:
    sample = Sample()
    for gap, duration in times:
        sample.clock += gap
        sample.op("aten.mm", "cpu", duration)
    trace = sample.builder.build()
    scale = Scale(trace)
    start = trace.ops.ints("start").astype(np.int64)
    points = scale(np.sort(np.concatenate([start, start + np.maximum(trace.ops.ints("duration"), 0)])))
    assert bool(np.all(np.diff(points) >= 0))
    assert points[0] == 0
    assert 0 <= points[-1] <= 1
    ElementTree.fromstring(timeline(trace))


def test_notes_have_no_flag_and_flags_keep_the_numbers_of_the_report() -> None:
    sample = Sample()
    ops = [sample.op("aten.mm", "cpu") for _ in range(3)]
    severities = ("error", "note", "warning")
    sample.builder.findings = tuple({"severity": name, "op": op} for name, op in zip(severities, ops, strict=True))
    shown = texts(timeline(sample.builder.build()))
    assert [number in shown for number in "123"] == [True, False, True]


def of_rank(rank: int, *more: str) -> TraceData:
    sample = Sample("train.py")
    for name in ("aten.mm", *more, "c10d.allreduce_", "aten.add_", "c10d.allreduce_", "c10d.send"):
        sample.op(name, f"cuda:{rank}")
    return with_rank(sample.builder.build(), rank)


def test_ranks_that_did_the_same_are_drawn_once_with_their_numbers() -> None:
    svg = timeline(merge([of_rank(rank, *(["aten.item"] if rank == 2 else [])) for rank in (0, 1, 2, 3, 5)]))
    assert [text for text in texts(svg) if text.startswith("cuda")] == ["cuda:0", "cuda:2"]
    assert [text for text in texts(svg) if text.startswith("rank")] == ["ranks 0–1, 3, 5", "rank 2 · 6 ops"]


def test_of_ranks_that_did_the_same_the_one_with_a_finding_is_drawn() -> None:
    merged = merge([of_rank(rank) for rank in range(3)])
    op = next(id for id, op in enumerate(merged.ops) if op.thread.rank == 1)
    finding = {"rule": "rank-device", "severity": "warning", "op": op, "devices": []}
    svg = timeline(replace(merged, findings=(finding,)))
    assert [text for text in texts(svg) if text.startswith("cuda")] == ["cuda:1"]
    assert [text for text in texts(svg) if text.startswith("rank")] == ["ranks 0–2"]


def test_no_label_of_a_job_is_longer_than_its_room() -> None:
    def threads(rank: int) -> TraceData:
        sample = Sample("train.py")
        for number in range(2):
            thread = sample.builder.append("threads", name=f"pt_data_worker_{number}", rank=-1)
            sample.op("aten.mm", f"cuda:{rank}", thread=thread)
        for _ in range(rank % 2):
            sample.op("aten.item", f"cuda:{rank}")
        return with_rank(sample.builder.build(), rank)

    shown = texts(timeline(merge([threads(rank) for rank in range(64)])))
    assert {text for text in shown if text.startswith("ranks")} == {"ranks 0, 2, 4,…", "ranks 1, 3, 5,…"}
    beside = [text for text in shown if text.endswith((" op", " ops", "…", "simulated"))]
    assert "pt_data_worker…" in beside
    assert max(map(len, beside)) <= 15


SVG = "{http://www.w3.org/2000/svg}"
SMALL_PAGE = 400
LETTER = 5


def test_below_the_lanes_no_words_overlap_on_a_small_page() -> None:
    sample = training(30)
    picture = ElementTree.fromstring(timeline(sample))
    height = float(picture.get("height", ""))
    spans: dict[float, list[tuple[float, float]]] = {}
    for node in [*picture.findall(f"{SVG}text"), *picture.findall(f"{SVG}svg[@width!='82.5%']/{SVG}text")]:
        wide = LETTER * len(node.text or "")
        end = node.get("text-anchor") == "end"
        begin = 0.985 * SMALL_PAGE - wide if end else 0.16 * SMALL_PAGE + float(node.get("x", "0"))
        spans.setdefault(float(node.get("y", "0")), []).append((begin, begin + wide))
    rows = [sorted(row) for row in spans.values()]
    assert all(first[1] <= second[0] for row in rows for first, second in pairwise(row)), spans
    assert min(begin for row in rows for begin, _ in row) >= 0
    assert max(spans) < height


def test_the_mark_of_a_wide_op_leaves_its_name_free() -> None:
    sample = Sample()
    wide = sample.op("aten.mm", "cuda:0")
    warned = replace(sample.builder.build(), findings=(flag(wide),))
    [outline] = [node for node in ElementTree.fromstring(timeline(warned)).iter(f"{SVG}rect") if node.get("stroke")]
    assert outline.get("fill") == "none"
    assert outline.get("width") == "100.00%"
    for _ in range(200):
        sample.op("aten.mm", "cuda:0")
    warned = replace(sample.builder.build(), findings=(flag(wide),))
    [ring] = [node for node in ElementTree.fromstring(timeline(warned)).iter(f"{SVG}rect") if node.get("stroke")]
    assert ring.get("width") == "10"


def test_the_words_of_the_first_flag_are_clear_of_the_next_one() -> None:
    sample = Sample()
    for _ in range(20):
        sample.op("aten.mm", "cuda:0")
    trace = sample.builder.build()

    def side(*ops: int) -> str | None:
        picture = ElementTree.fromstring(timeline(replace(trace, findings=tuple(map(flag, ops)))))
        words = [node.get("text-anchor") for node in picture.iter(f"{SVG}text") if node.get("y") == "11"]
        return next((anchor for anchor in words if anchor != "middle"), None)

    assert side(8) == "start"
    assert side(8, 9) == "end"
    assert side(8, 7, 9) is None


def test_the_name_of_the_tensor_is_where_no_arrow_of_a_copy_crosses_it() -> None:
    def name_at(trace: TraceData) -> list[str | None]:
        words = ElementTree.fromstring(timeline(trace)).iter(f"{SVG}text")
        return [node.get("y") for node in words if "model.out_head.weight" in (node.text or "")]

    title = "11"
    assert name_at(training(30)) == [title]
    (beside,) = name_at(head_trace())
    assert beside != title


def test_the_flag_of_the_last_op_has_room_on_a_page_of_420() -> None:
    sample = Sample()
    ops = [sample.op("aten.mm", "cuda:0") for _ in range(400)]
    picture = ElementTree.fromstring(timeline(replace(sample.builder.build(), findings=(flag(ops[-1]),))))
    (disc,) = [each for each in picture.iter(f"{SVG}svg") if each.find(f"{SVG}circle") is not None]
    wide = SMALL / (WIDE / 100)
    assert (GUTTER + WIDE * float((disc.get("x") or "").rstrip("%")) / 100) / 100 * wide + 7.5 <= wide


def flag(op: int) -> dict[str, Any]:
    return {"rule": "host-sync", "severity": "warning", "op": op, "message": "", "help": "", "devices": []}


def test_every_device_has_a_shade_and_one_of_no_known_kind_too() -> None:
    for device in ("cpu", "cuda:0", "cuda:99", "mps", "xpu:1", "meta", "tpu:3", "", "cuda:x", "cuda:99999999999"):
        assert palette.shade(device).fill.startswith("#")


def test_two_devices_of_a_kind_differ_in_fill_hatch_and_letter() -> None:
    first, second = palette.shade("cuda:0"), palette.shade("cuda:1")
    assert [a != b for a, b in zip(first, second, strict=True)] == [True, False, True, True]


def test_lanes_are_ordered_by_kind_and_then_by_index() -> None:
    devices = ["cuda:10", "cuda:2", "weird", "meta", "cpu", "mps"]
    assert sorted(devices, key=palette.order) == ["cpu", "cuda:2", "cuda:10", "mps", "weird", "meta"]


def test_an_accelerator_of_any_name_is_drawn_as_none_of_the_others_are() -> None:
    shades = [palette.shade(device, theme) for theme in ("light", "dark") for device in ("accel:0", "accel:1")]
    others = {palette.shade(f"{kind}:0", theme).fill for kind in ("cpu", "cuda", "meta") for theme in ("light", "dark")}
    assert len({shade.fill for shade in shades} | others) == 4 + len(others)
    assert [shade.letter for shade in shades] == ["D0", "D1"] * 2
