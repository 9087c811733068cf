"""The timeline of a job: alike ranks as one group that opens by pointer and keyboard, collectives across them."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from built import stale
from devtrace.jobs.merge import merge, with_rank
from devtrace.jobs.page import encoded
from devtrace.trace.tables import TraceData
from e2e.views import AXE, Views, point_at, violations
from samples import Sample
from warm import Warm

pytestmark = pytest.mark.e2e

PROGRAM = Path(__file__).with_name("data_parallel.py")
EVERY = 30
"""Pixels between the points of a lane at which the pointer looks for a collective."""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Give the pages of the job on four ranks and, with their traces, on 64."""
    assert not (reason := stale()), reason
    folder = tmp_path_factory.mktemp("ranks")
    found = {ranks: folder / f"{ranks}.html" for ranks in (4, 64)}
    with Warm() as warm:
        for ranks, page in found.items():
            warm.call("job_programs", "page_of", str(PROGRAM), "4", str(page), str(ranks))
    return found


def opened(page: Page, file: Path) -> Locator:
    page.goto(file.as_uri())
    timeline = page.locator('[data-devtrace="timeline"][data-ready="true"]')
    timeline.wait_for()
    return timeline


def rows_height(timeline: Locator) -> int:
    height: int = timeline.locator(".dt-plot").evaluate("plot => plot.scrollHeight")
    return height


def wait_for_rows(page: Page, height: str) -> None:
    """Wait until the rows have a height: the button is told at once, the rows with the next frame."""
    rows = "const rows = document.querySelector('.dt-plot').scrollHeight"
    page.wait_for_function(f"() => {{ {rows}; return {height}; }}")


def test_alike_ranks_are_one_group_and_the_one_that_waits_is_another(page: Page, pages: dict[int, Path]) -> None:
    timeline = opened(page, pages[4])
    titles = timeline.locator(".dt-rank-title")
    expect(titles).to_contain_text(["ranks 0, 2–3 of 4", "rank 1 of 4"])
    plot = timeline.get_by_role("application")
    assert (plot.get_attribute("aria-label") or "").startswith("Timeline of 4 ranks with")
    expect(timeline.get_by_role("button", name="ranks 0, 2–3 of 4")).to_have_attribute("aria-expanded", "false")


def test_a_group_opens_and_closes_by_pointer(page: Page, pages: dict[int, Path]) -> None:
    timeline = opened(page, pages[4])
    button = timeline.get_by_role("button", name="ranks 0, 2–3 of 4")
    before = rows_height(timeline)
    button.click()
    expect(button).to_have_attribute("aria-expanded", "true")
    wait_for_rows(page, f"rows > {1.5 * before}")
    button.click()
    expect(button).to_have_attribute("aria-expanded", "false")
    wait_for_rows(page, f"rows === {before}")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_a_group_opens_by_keyboard_and_the_titles_scroll_with_the_rows(
    page: Page, pages: dict[int, Path], key: str
) -> None:
    timeline = opened(page, pages[64])
    group = timeline.get_by_role("button", name="of 64")
    group.focus()
    page.keyboard.press(key)
    expect(group).to_have_attribute("aria-expanded", "true")
    expect(group).to_be_focused()
    alone = timeline.locator(".dt-rank-title").last
    plot = timeline.locator(".dt-plot")
    plot.evaluate("plot => plot.scrollTo(0, plot.scrollHeight)")
    expect(alone).to_be_in_viewport()
    expect(group).not_to_be_in_viewport()
    timeline.get_by_role("searchbox").focus()
    group.focus()
    expect(group).to_be_in_viewport()
    page.wait_for_function("() => document.querySelector('.dt-plot').scrollTop < 20")


def test_the_card_of_a_collective_names_its_ranks_and_the_last_to_come(page: Page, pages: dict[int, Path]) -> None:
    timeline = opened(page, pages[64])
    box = timeline.locator(".dt-rank-title").last.bounding_box()
    plot = timeline.locator(".dt-plot").bounding_box()
    assert box
    assert plot
    title = page.locator(".dt-card-title")
    found: list[str] = []
    for x in range(int(box["x"] + box["width"]) + 5, int(plot["x"] + plot["width"]) - 5, EVERY):
        point_at(page, x, box["y"] + 10)
        if title.is_visible():
            found.append(page.locator(".dt-card").inner_text())
    assert any("c10d" in text and "0–63" in text and "last to come" in text for text in found), found


@pytest.mark.one_in(2)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_opened_ranks_have_no_accessibility_violation(page: Page, pages: dict[int, Path], theme: str) -> None:
    page.emulate_media(color_scheme="light" if theme == "light" else "dark")
    timeline = opened(page, pages[4])
    timeline.get_by_role("button", name="ranks 0, 2–3 of 4").click()
    page.add_script_tag(content=AXE.read_text(encoding="utf-8"))
    assert not violations(page, '[data-devtrace="timeline"]')


def test_the_lines_count_all_ranks(page: Page, pages: dict[int, Path]) -> None:
    opened(page, pages[64])
    page.get_by_role("tab", name="Lines", exact=True).click()
    waiting = page.locator('[data-devtrace="lines"] [data-line="24"]')
    expect(waiting).to_contain_text("3")


def rank_with_a_collective(rank: int) -> TraceData:
    sample = Sample("train.py")
    for name in ("aten.mm", "c10d.allreduce_", "aten.item" if rank == 2 else "aten.add_"):
        sample.op(name, f"cuda:{rank}")
    return with_rank(sample.builder.build(), rank)


@pytest.mark.breadth
def test_a_page_without_all_ops_names_the_ranks_of_which_it_has_the_collectives_alone(page: Page) -> None:
    job = merge([rank_with_a_collective(rank) for rank in range(4)])
    report = Views(page).mount(encoded(job, 5))
    titles = report.locator(".dt-rank-title")
    expect(titles).to_have_text(
        ["ranks 0–1, 3 of 4 did the same: 3 ops each", "rank 2 of 4: only its collectives are here"]
    )
    titles.first.click()
    expect(titles.first).to_have_attribute("aria-expanded", "true")
