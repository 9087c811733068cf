"""The magics as a person meets them in JupyterLab: reports below their cells, errors, Run All, Tab, interrupts."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from e2e.notebook import Notebook
from e2e.server import Server

pytestmark = pytest.mark.e2e

LOAD = "%load_ext devtrace\nimport torch\nx = torch.ones(3)"


def outputs(notebook: Notebook, index: int) -> list[str]:
    """The MIME types of a cell's outputs as the page holds them, "error" and "stream" among them."""
    kinds: list[str] = notebook.page.evaluate(
        "index => jupyterapp.shell.currentWidget.content.widgets[index].model.outputs.toJSON().map("
        "output => output.data ? Object.keys(output.data)[0] : output.output_type)",
        index,
    )
    return kinds


def count(notebook: Notebook, index: int) -> int | None:
    """The execution count of a cell; None before it ran."""
    number: int | None = notebook.page.evaluate(
        "index => jupyterapp.shell.currentWidget.content.widgets[index].model.executionCount", index
    )
    return number


def test_a_failing_cell_shows_its_error_and_below_it_the_report_and_stops_run_all(page: Page, server: Server) -> None:
    cells = (LOAD, "%%devtrace --simulate cuda:1\nx.cuda() + x", "later = 1")
    notebook = Notebook.open(page, server, server.write("failing.ipynb", *cells))
    notebook.run_all()
    report = notebook.wait_ready("report")
    assert outputs(notebook, 1) == ["error", "application/vnd.devtrace.v1+json"]
    expect(report.locator('[data-rule="device-mismatch"][data-severity="error"]')).to_be_visible()
    expect(notebook.cell(1).locator(".jp-OutputArea-output").first).not_to_contain_text("devtrace/recording")
    assert count(notebook, 2) is None


def test_the_value_stands_above_the_report_and_a_second_run_replaces_both(page: Page, server: Server) -> None:
    cells = (LOAD, "%%devtrace\nimport asyncio\nawait asyncio.sleep(0)\nx * 2")
    notebook = Notebook.open(page, server, server.write("value.ipynb", *cells))
    notebook.run_all()
    notebook.wait_ready("report")
    notebook.run(1)
    expect(notebook.wait_ready("report")).to_have_attribute("data-op-count", "1")
    assert outputs(notebook, 1) == ["text/plain", "application/vnd.devtrace.v1+json"]
    expect(notebook.cell(1).locator(".jp-OutputArea-output").first).to_contain_text("tensor([2., 2., 2.])")
    assert count(notebook, 1) == 3


def test_while_on_a_clean_cell_shows_a_line_and_a_failing_one_its_report(page: Page, server: Server) -> None:
    cells = (LOAD, "%devtrace simulate cuda:1", "%devtrace on", "y = x + 1", "n = 1", "x.cuda() + x")
    notebook = Notebook.open(page, server, server.write("on.ipynb", *cells))
    notebook.run_all()
    notebook.wait_ready("report")
    assert outputs(notebook, 3) == ["text/plain"]
    expect(notebook.cell(3).locator(".jp-OutputArea-output")).to_contain_text("devtrace In[4]")
    assert outputs(notebook, 4) == []
    assert outputs(notebook, 5) == ["error", "application/vnd.devtrace.v1+json"]


def test_a_line_that_cannot_be_followed_is_one_sentence_under_the_cell(page: Page, server: Server) -> None:
    cells = (LOAD, "%%devtrace --bogus\nran = True", "later = 1")
    notebook = Notebook.open(page, server, server.write("bogus.ipynb", *cells))
    notebook.run_all()
    output = notebook.cell(1).locator(".jp-OutputArea-output")
    expect(output).to_contain_text("UsageError: unknown-flag: got %%devtrace --bogus; its flags are --simulate cuda:N")
    assert outputs(notebook, 1) == ["error"]
    assert count(notebook, 2) is None


def test_the_tab_key_completes_a_flag(page: Page, server: Server) -> None:
    notebook = Notebook.open(page, server, server.write("tab.ipynb", LOAD, ""))
    notebook.run(0)
    notebook.cell(1).locator(".jp-InputArea-editor").click()
    page.keyboard.type("%%devtrace --sim")
    expect(notebook.cell(1).locator(".jp-mod-completer-enabled")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.locator(".jp-Completer-item")).to_contain_text("--simulate")
    page.keyboard.press("Enter")
    expect(notebook.cell(1).locator(".cm-content")).to_have_text("%%devtrace --simulate")


def test_an_interrupted_cell_shows_what_it_did_so_far(page: Page, server: Server) -> None:
    cells = (LOAD, "%%devtrace\nprint('started', flush=True)\nwhile True:\n    y = x + 1", "x")
    notebook = Notebook.open(page, server, server.write("interrupted.ipynb", *cells))
    notebook.run(0)
    notebook.cell(1).locator(".jp-InputArea-editor").click()
    page.evaluate("() => { void jupyterapp.commands.execute('notebook:run-cell'); }")
    expect(notebook.cell(1).locator(".jp-OutputArea-output")).to_contain_text("started")
    notebook.command("notebook:interrupt-kernel")
    notebook.wait_ready("report")
    assert outputs(notebook, 1)[:2] == ["stream", "error"]
    notebook.run(2)
    expect(notebook.cell(2).locator(".jp-OutputArea-output")).to_contain_text("tensor([1., 1., 1.])")
