"""The magics as a person meets them in JupyterLab: reports below their cells, errors, Run All, Tab, interrupts."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from e2e.lab import Lab
from e2e.notebook import Notebook
from e2e.sidebar import execution_count

pytestmark = pytest.mark.e2e

LOAD = "%load_ext devtrace\nimport torch\nx = torch.ones(3)"


def outputs(notebook: Notebook, index: int) -> list[str]:
    """Return the MIME types of a cell's outputs as the page holds them, "error" and "stream" among them."""
    kinds: list[str] = notebook.page.evaluate(
        "index => jupyterapp.shell.currentWidget.content.widgets[index].model.outputs.toJSON().map("
        "output => output.data ? Object.keys(output.data)[0] : output.output_type)",
        index,
    )
    return kinds


def test_a_failing_cell_shows_its_error_and_below_it_the_report_and_stops_run_all(lab: Lab) -> None:
    cells = (LOAD, "%%devtrace --simulate cuda:1\nx.cuda() + x", "later = 1")
    notebook = lab.open("failing.ipynb", *cells, run="all")
    report = notebook.wait_ready("report")
    assert outputs(notebook, 1) == ["error", "application/vnd.devtrace.v1+json"]
    expect(report.locator('[data-rule="device-mismatch"][data-severity="error"]')).to_be_visible()
    expect(notebook.cell(1).locator(".jp-OutputArea-output").first).not_to_contain_text("devtrace/recording")
    assert execution_count(notebook, 2) is None


def test_the_value_is_above_the_report_and_a_second_run_replaces_both(lab: Lab) -> None:
    cells = (LOAD, "%%devtrace\nimport asyncio\nawait asyncio.sleep(0)\nx * 2")
    notebook = lab.open("value.ipynb", *cells, run="all")
    notebook.wait_ready("report")
    notebook.run(1)
    expect(notebook.wait_ready("report")).to_have_attribute("data-op-count", "1")
    assert outputs(notebook, 1) == ["text/plain", "application/vnd.devtrace.v1+json"]
    expect(notebook.cell(1).locator(".jp-OutputArea-output").first).to_contain_text("tensor([2., 2., 2.])")
    assert execution_count(notebook, 1) == 3


@pytest.mark.breadth
def test_while_on_a_clean_cell_shows_a_line_and_a_failing_one_its_report(lab: Lab) -> None:
    cells = (LOAD, "%devtrace simulate cuda:1", "%devtrace on", "y = x.cuda() + 1", "n = 1", "x.cuda() + x")
    notebook = lab.open("on.ipynb", *cells, run="all")
    notebook.wait_ready("report")
    assert outputs(notebook, 3) == ["text/plain"]
    expect(notebook.cell(3).locator(".jp-OutputArea-output")).to_contain_text("devtrace In[4]")
    assert outputs(notebook, 4) == []
    assert outputs(notebook, 5) == ["error", "application/vnd.devtrace.v1+json"]


@pytest.mark.breadth
def test_a_line_that_cannot_be_followed_is_one_sentence_under_the_cell(lab: Lab) -> None:
    cells = (LOAD, "%%devtrace --bogus\nran = True", "later = 1")
    notebook = lab.open("bogus.ipynb", *cells, run="all")
    output = notebook.cell(1).locator(".jp-OutputArea-output")
    expect(output).to_contain_text("UsageError: unknown-flag: got %%devtrace --bogus; its flags are --simulate cuda:N")
    assert outputs(notebook, 1) == ["error"]
    assert execution_count(notebook, 2) is None


@pytest.mark.breadth
def test_the_tab_key_completes_a_flag(lab: Lab) -> None:
    notebook = lab.open("completed.ipynb", LOAD, "", run="first")
    notebook.cell(1).locator(".jp-InputArea-editor").click()
    lab.page.keyboard.type("%%devtrace --sim")
    expect(notebook.cell(1).locator(".jp-mod-completer-enabled")).to_be_visible()
    lab.page.keyboard.press("Tab")
    expect(lab.page.locator(".jp-Completer-item")).to_contain_text("--simulate")
    lab.page.keyboard.press("Enter")
    expect(notebook.cell(1).locator(".cm-content")).to_have_text("%%devtrace --simulate")


def test_an_interrupted_cell_shows_what_it_did_so_far(lab: Lab) -> None:
    cells = (LOAD, "%%devtrace\nprint('started', flush=True)\nwhile True:\n    y = x + 1", "x")
    notebook = lab.open("interrupted.ipynb", *cells, run="first")
    notebook.start(1)
    expect(notebook.cell(1).locator(".jp-OutputArea-output")).to_contain_text("started")
    notebook.command("notebook:interrupt-kernel")
    notebook.wait_ready("report")
    assert outputs(notebook, 1)[:2] == ["stream", "error"]
    notebook.run(2)
    expect(notebook.cell(2).locator(".jp-OutputArea-output")).to_contain_text("tensor([1., 1., 1.])")
