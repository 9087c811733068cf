"""A real marimo: a report as the last expression of a reactive cell, and a live view that grows while a cell runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

import needs
from e2e import marimo
from e2e.marimo import Marimo
from e2e.views import open_every_view

pytestmark = pytest.mark.foreign

NOTEBOOK = """\
import marimo
app = marimo.App()

@app.cell
def _():
    import torch
    import devtrace
    from torch import nn
    return devtrace, nn, torch

@app.cell
def _(devtrace, nn, torch):
    with devtrace.record(simulate="cuda:1") as recording:
        try:
            model = nn.Linear(4, 2)
            model(torch.ones(2, 4, device="cuda"))
        except RuntimeError:
            pass
    return (recording,)

@app.cell
def _(recording):
    recording.report
    return
"""


LIVE = """\
import marimo
app = marimo.App()

@app.cell
def _():
    import pathlib
    import threading
    import devtrace
    import torch
    return devtrace, pathlib, threading, torch

@app.cell
def _(devtrace):
    live = devtrace.LiveView()
    live
    return (live,)

@app.cell
def _(devtrace, live, pathlib, threading, torch):
    def work():
        for _ in range(500):
            torch.ones(2, device="cuda").add(1)

    with devtrace.record(simulate="cuda:1", name="by threads"):
        while not pathlib.Path("enough").exists():
            thread = threading.Thread(target=work, name="worker")
            thread.start()
            thread.join()
    return
"""


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    needs.present(marimo.is_installed(), marimo.HOW_TO_GET_IT)


@pytest.fixture(scope="module")
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Marimo]:
    command, notebook, theme = request.param
    with marimo.serve(command, notebook, tmp_path_factory.mktemp("marimo"), theme) as running:
        yield running


def of(command: str, notebook: str = NOTEBOOK, theme: str = "light") -> pytest.MarkDecorator:
    """Mark a test that looks at a notebook which marimo runs or edits."""
    return pytest.mark.parametrize("served", [(command, notebook, theme)], indirect=True, ids=[f"{command} {theme}"])


@of("run")
def test_a_report_as_the_last_expression_is_alive(page: Page, served: Marimo) -> None:
    page.goto(served.url)
    outputs = page.frame_locator("iframe")
    outputs.locator('.dt-report[data-ready="true"]').wait_for()
    finding = outputs.locator('[data-devtrace="finding"][data-rule="device-mismatch"]')
    expect(finding).to_contain_text("model.weight")
    expect(finding).to_contain_text("addmm")
    # An app runs its cells as lines of their file; a notebook that is edited runs each as a file of its own.
    expect(finding).to_contain_text("notebook.py line")
    open_every_view(outputs)


@of("run")
def test_a_small_report_is_seen_whole_in_its_frame(page: Page, served: Marimo) -> None:
    page.goto(served.url)
    outputs = page.frame_locator("iframe")
    outputs.locator('[data-devtrace="timeline"][data-ready="true"]').wait_for()
    frame = page.locator("iframe").element_handle()
    assert frame is not None
    page.wait_for_function(
        "frame => frame.contentDocument.documentElement.scrollHeight <= frame.clientHeight + 1", arg=frame
    )


# marimo may mount a view anew meanwhile, in the shadow of an element of its own: each look finds the one that is there.
GROWN = """ops => {
  const find = root => root.querySelector('[data-devtrace=live]') ?? [...root.querySelectorAll('*')]
    .filter(each => each.shadowRoot).map(each => find(each.shadowRoot)).find(each => each);
  return Number(find(document)?.dataset.opCount) > ops;
}"""


@of("edit", LIVE)
def test_a_live_view_grows_while_threads_of_a_cell_run(page: Page, served: Marimo) -> None:
    page.goto(served.url)
    view = page.locator('[data-devtrace="live"][data-ready="true"]')
    view.wait_for()
    ops = 0
    for _ in range(3):
        page.wait_for_function(GROWN, arg=ops)
        ops = int(view.get_attribute("data-op-count") or 0)
    expect(view).to_contain_text("by threads")
    expect(view).to_contain_text("cuda:0")
    expect(view.get_by_role("button", name="Stop")).to_have_count(0)
    view.locator("canvas").first.wait_for()
    (served.folder / "enough").touch()
    expect(view).to_contain_text("done")
    assert int(view.get_attribute("data-op-count") or 0) >= ops


@of("edit")
def test_in_an_edited_notebook_a_site_has_the_id_that_marimo_gives_its_cell(page: Page, served: Marimo) -> None:
    page.goto(served.url)
    finding = page.frame_locator("iframe").locator('[data-devtrace="finding"][data-rule="device-mismatch"]')
    expect(finding).to_contain_text(re.compile(r"cell-\w{4} line 4"))
    cell = re.search(r"cell-\w{4}", finding.inner_text())
    assert cell
    expect(page.locator(f"#{cell[0]}")).to_contain_text("model = nn.Linear(4, 2)")


@of("run", theme="dark")
def test_a_report_is_dark_as_marimo_is_and_answers_the_keyboard(page: Page, served: Marimo) -> None:
    page.goto(served.url)
    outputs = page.frame_locator("iframe")
    outputs.locator('.dt-report.dt-dark[data-ready="true"]').wait_for()
    # Of another colour scheme than marimo's, the frame would be white round the report.
    expect(outputs.locator(":root")).to_have_css("color-scheme", "dark")
    expect(page.locator(":root")).to_have_css("color-scheme", "dark")
    outputs.get_by_role("tab", name="Timeline", exact=True).focus()
    page.keyboard.press("ArrowRight")
    expect(outputs.get_by_role("tab", name="Modules", exact=True)).to_be_focused()
    page.evaluate("document.documentElement.classList.replace('dark', 'light')")
    page.evaluate("document.body.classList.replace('dark', 'light')")
    expect(outputs.locator(".dt-report.dt-dark")).to_have_count(0)
    expect(outputs.locator(":root")).to_have_css("color-scheme", "light")
