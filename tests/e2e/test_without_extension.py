"""A JupyterLab that has no devtrace extension still shows a traced cell's report, as html."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from e2e.notebook import Notebook
from e2e.server import serve

pytestmark = pytest.mark.e2e


def test_without_the_extension_the_html_shows(page: Page, tmp_path_factory: pytest.TempPathFactory) -> None:
    with serve(tmp_path_factory.mktemp("bare"), extension=False) as server:
        cells = ("%load_ext devtrace", "%%devtrace\nimport torch\nx = torch.ones(3) + 1")
        notebook = Notebook.open(page, server, server.write("bare.ipynb", *cells))
        notebook.run_all()
        html = notebook.panel.locator('.jp-RenderedHTML [data-devtrace="report"]')
        expect(html).to_contain_text("cpu")
        expect(html.locator("svg").first).to_be_visible()
        expect(notebook.page.locator('[data-devtrace="report"]')).to_have_count(1)
