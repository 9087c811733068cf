"""The report of a failing cell in a real JupyterLab and Notebook 7: seen, clicked, saved, and seen again untrusted."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

import make_traces
from devtrace.trace.format import save
from e2e.lab import Lab
from e2e.notebook import Notebook, wait_restored
from e2e.server import TOKEN, Server
from e2e.views import TABS, open_view, violations

pytestmark = pytest.mark.e2e

LOAD = "%load_ext devtrace\n%devtrace simulate cuda:1\nimport torch\nfrom torch import nn"
MODEL = (
    "model = nn.Sequential()\nmodel.body = nn.Linear(8, 8)\nmodel.head = nn.Linear(8, 8)\n"
    'device = torch.device("cuda")\nmodel.to(device);'
)
HEAD = "model.head = nn.Linear(8, 2)"
USE = "%%devtrace\nx = torch.randn(4, 8, device=device)\nmodel(x)"


CELLS = (LOAD, MODEL, HEAD, USE)


def run(notebook: Notebook) -> Notebook:
    notebook.run_all()
    notebook.wait_ready("report")
    return notebook


def expect_the_story(notebook: Notebook) -> None:
    """Expect the finding, and after a click its op, module and line, in every view."""
    page = notebook.page
    finding = page.locator('[data-devtrace="finding"][data-rule="device-mismatch"]')
    expect(finding).to_contain_text("model.head")
    finding.click()
    expect(finding).to_have_attribute("aria-selected", "true")
    # JupyterLab floats the terms of lists in outputs, each a fifth of the width.
    expect(finding.get_by_text("Created", exact=True)).to_have_css("float", "none")
    page.locator('[data-devtrace="timeline"][data-ready="true"]').wait_for()
    for tab, picked in (
        ("Modules", '[data-module="model.head"][data-device="cpu"][aria-selected="true"]'),
        ("Lines", '[data-line="3"][aria-selected="true"]'),
        ("Ops", '.dt-op-row[aria-selected="true"]:has-text("addmm")'),
    ):
        page.get_by_role("tab", name=tab, exact=True).click()
        expect(page.locator(picked)).to_be_visible()


def test_a_failing_cell_shows_its_story(lab: Lab) -> None:
    expect_the_story(run(lab.open("told.ipynb", *CELLS)))


@pytest.mark.breadth
def test_a_failing_cell_shows_its_story_in_notebook_7_by_keyboard_too_and_in_its_theme(
    page: Page, server: Server
) -> None:
    notebook = run(Notebook.open(page, server, server.write("story-7.ipynb", *CELLS), "notebook"))
    expect_the_story(notebook)
    notebook.expect_keys_and_theme()


@pytest.mark.breadth
def test_axe_finds_no_violation_in_lab_in_either_theme(lab: Lab) -> None:
    """With JupyterLab's own colours, which the report takes over."""
    page, notebook = lab.page, Notebook(lab.page)
    save(make_traces.failing(), lab.server.folder / "axe.devtrace")
    notebook.command("docmanager:open", path="axe.devtrace")
    page.locator('[data-devtrace="timeline"][data-ready="true"]').wait_for()
    for theme, is_light in (("JupyterLab Dark", "false"), ("JupyterLab Light", "true")):
        notebook.command("apputils:change-theme", theme=theme)
        page.wait_for_function("light => document.body.dataset.jpThemeLight === light", arg=is_light)
        for tab in TABS:
            open_view(page, tab)
            assert violations(page, '[data-devtrace="report"]') == [], (theme, tab)


def test_it_is_all_there_again_untrusted_and_without_a_kernel(page: Page, server: Server) -> None:
    run(Notebook.open(page, server, server.write("first.ipynb", *CELLS))).save()
    saved = server.read("first.ipynb")
    server.shut_kernels_down()
    # Written from outside, the copy has no signature: JupyterLab does not trust it.
    server.write("untrusted.ipynb", *saved.cells)
    again = Notebook.open(page, server, "untrusted.ipynb", kernel=False)
    again.wait_ready("report")
    assert not page.evaluate("jupyterapp.shell.currentWidget.content.model.cells.get(3).trusted")
    expect_the_story(again)


def test_a_file_opens_with_a_double_click(page: Page, server: Server) -> None:
    save(make_traces.failing(), server.folder / "run.devtrace")
    page.goto(f"{server.url}lab/workspaces/e2e?reset&token={TOKEN}")
    wait_restored(page)
    page.get_by_role("listitem", name="run.devtrace").first.dblclick()
    report = page.locator('[data-devtrace="report"][data-ready="true"]')
    expect(report).to_have_attribute("data-op-count", "102")
    expect(report.locator('[data-devtrace="timeline"]')).to_have_attribute("data-ready", "true")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("text", ["{", json.dumps({"format": "devtrace", "version": 99}), ""])
def test_a_file_that_is_no_trace_is_refused_in_one_sentence(lab: Lab, text: str) -> None:
    (lab.server.folder / "broken.devtrace").write_text(text)
    Notebook(lab.page).command("docmanager:open", path="broken.devtrace")
    expect(lab.page.get_by_role("alert").filter(has_text="trace-")).to_be_visible()
