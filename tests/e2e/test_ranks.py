"""The page of a job: the lanes of all its ranks, and lines that count all of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from warm import Warm

pytestmark = pytest.mark.e2e

PROGRAM = Path(__file__).with_name("data_parallel.py")


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the page of the job on 64 ranks, with the traces of four."""
    file = tmp_path_factory.mktemp("ranks") / "job.html"
    with Warm() as warm:
        warm.call("job_programs", "page_of", str(PROGRAM), "4", str(file), "64")
    return file


def opened(page: Page, file: Path) -> Locator:
    page.goto(file.as_uri())
    timeline = page.locator('[data-devtrace="timeline"][data-ready="true"]')
    timeline.wait_for()
    return timeline


def test_the_lanes_of_every_rank_are_there_and_scroll(page: Page, job: Path) -> None:
    plot = opened(page, job).locator(".dt-plot")
    height, seen = plot.evaluate("plot => [plot.scrollHeight, plot.clientHeight]")
    assert height > 5 * seen
    plot.evaluate("plot => plot.scrollTo(0, plot.scrollHeight)")
    page.wait_for_function(f"() => document.querySelector('.dt-plot').scrollTop > {height - 2 * seen}")


def test_the_lines_count_all_ranks(page: Page, job: Path) -> None:
    opened(page, job)
    page.get_by_role("tab", name="Lines", exact=True).click()
    waiting = page.locator('[data-devtrace="lines"] [data-line="24"]')
    expect(waiting).to_contain_text("3")
