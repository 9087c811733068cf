"""Data that nobody vouches for, in a real browser: it is shown as text, drawn, or refused with one sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

import make_traces
from e2e import hostile
from e2e.views import Views, open_every_view

pytestmark = pytest.mark.e2e


@pytest.fixture
def views(page: Page) -> Views:
    return Views(page)


def alive(page: Page) -> None:
    """Assert that the page answers, ran nothing of the data, and has no element that the data brought."""
    assert page.evaluate("1 + 1") == 2
    assert page.evaluate("window.hacked") is None
    assert page.locator("#slot").locator("script, img, iframe, object, embed, link, style").count() == 0


@pytest.mark.one_in(10)
@pytest.mark.parametrize("text", hostile.TEXTS, ids=lambda text: ascii(text[:12]))
def test_any_text_is_shown_as_text(page: Page, views: Views, text: str) -> None:
    report = views.mount(hostile.with_text(hostile.failing(), text))
    open_every_view(page)
    if text.startswith("<img"):
        expect(report.locator('[data-devtrace="finding"]')).to_contain_text(hostile.MARKUP)
    assert not views.is_refused
    alive(page)


def test_mutated_traces_are_shown_or_refused_with_one_sentence(page: Page, views: Views) -> None:
    shown = 0
    for mutant in hostile.mutants(hostile.failing(), 120, seed=7):
        report = views.mount(mutant)
        if views.is_refused:
            assert report.inner_text().startswith("trace-"), report.inner_text()
        else:
            shown += 1
            open_every_view(page)
        alive(page)
    assert 10 < shown < 110


@pytest.mark.one_in(7)
@pytest.mark.parametrize(
    "make",
    [
        lambda: make_traces.timed(),
        lambda: make_traces.timed((0, 0)),
        lambda: make_traces.timed((0, -1)),
        lambda: make_traces.timed((2**52, 2**52)),
        lambda: make_traces.timed((0, 1), (2**52, 2**52), (2**52, 2**52)),
        lambda: hostile.huge(300, 1),
        lambda: hostile.huge(2, 10_000),
    ],
    ids=["no-op", "one-op", "one-failure", "absurd-time", "absurd-gap", "300-devices", "10000-threads"],
)
def test_extremes_are_drawn(page: Page, views: Views, make: Callable[[], object]) -> None:
    views.mount(make())  # type: ignore[arg-type]
    open_every_view(page)
    views.open("Timeline")
    page.get_by_role("application").focus()
    for key in ("+", "-", "End", "ArrowDown", "Home"):
        page.keyboard.press(key)
    alive(page)


def damaged(table: str, column: str, values: Any) -> str:
    """A file one of whose columns is something else."""
    trace = hostile.failing()
    trace[table][column] = values
    return json.dumps(trace)


@pytest.mark.one_in(10)
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "trace-foreign"),
        ('{"format": "devtrace", "version": NaN}', "trace-foreign"),
        (damaged("ops", "device", [0]), "trace-damaged"),
        (damaged("ops", "start", ["x"] * 102), "trace-damaged"),
        (damaged("ops", "duration", [None] * 102), "trace-damaged"),
        (damaged("ops", "call", [-7] * 102), "trace-damaged"),
        (damaged("calls", "end", {"n": 3, "data": "AAAA"}), "trace-damaged"),
        ("not JSON", "trace-foreign"),
        ('{"format": "devtrace"}', "trace-damaged"),
        (json.dumps({"format": "devtrace", "version": 99}), "version 99"),
    ],
)
def test_what_is_no_trace_is_refused_with_one_sentence(page: Page, views: Views, text: str, sentence: str) -> None:
    expect(views.mount(text)).to_contain_text(sentence)
    expect(page.get_by_role("alert")).to_have_count(1)
