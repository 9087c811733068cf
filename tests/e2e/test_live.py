"""LiveView in a real JupyterLab: it grows while the cell runs, says how far it is, and stops it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from e2e.notebook import Notebook
from e2e.server import Server

pytestmark = pytest.mark.e2e

SHOW = "%load_ext devtrace\nimport devtrace, torch\ndevtrace.LiveView()"
FOR_EVER = "%%devtrace\nx = torch.ones(8)\nwhile True:\n    x = x + 1"


def test_a_running_cell_is_seen_and_stopped(page: Page, server: Server) -> None:
    notebook = Notebook.open(page, server, server.write("live.ipynb", SHOW, FOR_EVER, "done = 1"))
    notebook.run(0)
    live = notebook.wait_ready("live")
    expect(live).to_contain_text("waiting for a traced cell")
    notebook.cell(1).locator(".jp-InputArea-editor").click()
    notebook.page.keyboard.press("Control+Enter")
    live.locator('[data-devtrace="timeline"][data-ready="true"]').wait_for()
    expect(live).to_contain_text("running")
    first = int(live.get_attribute("data-op-count") or 0)
    page.wait_for_function(
        "count => Number(document.querySelector('[data-devtrace=live]').dataset.opCount) > count", arg=first
    )
    live.get_by_role("button", name="Stop").click()
    notebook.wait_idle()
    expect(live).to_contain_text("done")
    expect(notebook.cell(1)).to_contain_text("KeyboardInterrupt")
    notebook.wait_ready("report")
