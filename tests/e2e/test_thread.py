"""The whole chain: magic, recorder, format, renderer, in a real JupyterLab and a real Notebook 7."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from e2e.notebook import App, Notebook
from e2e.server import Server

pytestmark = pytest.mark.e2e

CELLS = ("%load_ext devtrace", "%%devtrace\nimport torch\nx = torch.ones(3) + 1")


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_a_traced_cell_shows_its_ops_by_device(page: Page, server: Server, app: App) -> None:
    notebook = Notebook.open(page, server, server.write(f"{app}.ipynb", *CELLS), app)
    notebook.run_all()
    report = notebook.wait_ready("report")
    expect(report).to_have_attribute("data-op-count", "2")
    expect(report.locator('[data-device="cpu"]')).to_be_visible()
    expect(notebook.wait_ready("timeline")).to_be_visible()


def test_a_saved_trace_shows_again_without_a_kernel(page: Page, server: Server) -> None:
    notebook = Notebook.open(page, server, server.write("saved.ipynb", *CELLS))
    notebook.run_all()
    notebook.wait_ready("report")
    notebook.save()
    saved = server.read("saved.ipynb")
    saved.metadata.kernelspec.name = "gone"
    server.write("reopened.ipynb", *saved.cells)
    server.shut_kernels_down()
    again = Notebook.open(page, server, "reopened.ipynb", kernel=False)
    expect(again.wait_ready("report")).to_have_attribute("data-op-count", "2")
