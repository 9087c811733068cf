"""A device's memory as a picture and as a sentence: what stands where the views cannot run."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from devtrace.api.results import Trace, diagnose
from devtrace.drawing.curves import picture
from devtrace.report.html import fragment
from devtrace.trace.curve import KINDS, Curve, Part
from devtrace.words.language import CHOICE, Language
from samples import Sample, with_memory


def curve(*parts: tuple[str, list[int]], limit: int = 0) -> Curve:
    points = len(parts[0][1])
    made = tuple(Part(kind, "m", np.array(sizes)) for kind, sizes in parts)
    return Curve("cuda:0", limit, True, np.arange(points), made)


def test_a_picture_is_well_formed_and_has_its_peak() -> None:
    drawn = picture(curve(("parameter", [1 << 20] * 4), ("activation", [0, 1 << 20, 3 << 20, 0])), ops=4)
    root = ElementTree.fromstring(drawn)
    assert root.get("aria-label") == "cuda:0: at most 4.0 MiB"
    assert "3.0 MiB activations" in "".join(root.itertext())
    assert "1.0 MiB parameters" in "".join(root.itertext())


def test_the_limit_is_a_line_unless_it_is_far_above() -> None:
    near = picture(curve(("named", [8 << 20, 1 << 20]), limit=10 << 20), ops=2)
    far = picture(curve(("named", [8 << 20, 1 << 20]), limit=100 << 20), ops=2)
    assert "limit 10.0 MiB" in near
    assert "stroke-dasharray" not in far
    assert "at most 8.0 MiB of 100.0 MiB" in far


def test_an_area_carries_its_letter_where_there_is_room() -> None:
    wide = picture(curve(("gradient", [5, 5, 5]), ("temporary", [0, 0, 0])), ops=3)
    flat = picture(curve(("gradient", [1, 1, 1]), ("activation", [99, 99, 99])), ops=3)
    assert letters(wide) == ["G"]
    assert letters(flat) == ["A"]


def letters(drawn: str) -> list[str]:
    return re.findall(r'text-anchor="middle" fill="[^"]*">(\w)</text>', drawn.partition('<path d="M-4')[0])


def test_layers_end_where_the_next_one_begins() -> None:
    drawn = picture(curve(*((kind, [10, 20]) for kind in KINDS)), ops=2)
    paths = re.findall(r'<path d="M0 ([\d.]+)H0V([\d.]+)', drawn)
    assert [bottom for bottom, _ in paths[1:]] == [top for _, top in paths[:-1]]


def test_names_from_a_trace_are_not_taken_for_markup() -> None:
    hostile = replace(curve(("named", [9, 9])), device="<script>")
    assert "<script" not in picture(hostile, ops=2)


@pytest.mark.parametrize("tag", ["en", "zh"])
def test_a_device_with_a_limit_has_a_sentence_with_its_peak_and_the_line(
    tag: Language, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CHOICE, "user", tag)
    text = str(diagnose(with_memory(limit=1000)))
    assert "In[7]" in text
    assert "600 B" in text
    assert "1000 B" in text
    assert ("activations of `model.blocks`" if tag == "en" else "`model.blocks` 的激活值") in text


def test_without_a_limit_no_sentence_and_no_picture_is_added() -> None:
    report = diagnose(with_memory(limit=0))
    assert "at most" not in str(report)
    assert "at most" not in fragment(report)
    assert "at most 600 B" in fragment(diagnose(with_memory(limit=1000)))


def test_a_curve_of_a_trace_without_ops_names_no_line() -> None:
    [known] = with_memory(limit=1000).memory
    trace = Trace.of(replace(Sample().builder.build(), memory=(replace(known, ops=known.ops * 0 - 1),)))
    assert "600 B" in str(diagnose(trace))
