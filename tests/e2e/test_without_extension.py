"""A JupyterLab that has no devtrace extension still shows a traced cell's report, as html."""

from __future__ import annotations

from collections.abc import Iterator

import nbformat
import pytest
from playwright.sync_api import Page, expect

import make_traces
from devtrace.api.results import diagnose
from devtrace.report.mime import mime_bundle
from e2e.notebook import Notebook
from e2e.server import Server, serve
from e2e.views import open_every_view

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serve(tmp_path_factory.mktemp("bare"), extension=False) as server:
        yield server


def test_without_the_extension_the_html_shows(page: Page, bare: Server) -> None:
    cells = ("%load_ext devtrace", "%%devtrace\nimport torch\nx = torch.ones(3) + 1")
    notebook = Notebook.open(page, bare, bare.write("bare.ipynb", *cells))
    notebook.run_all()
    html = notebook.panel.locator('.jp-RenderedHTML [data-devtrace="report"]')
    expect(html).to_contain_text("cpu")
    expect(html.locator("svg").first).to_be_visible()
    expect(notebook.page.locator('[data-devtrace="report"]')).to_have_count(1)


@pytest.mark.breadth
@pytest.mark.parametrize("renderer", ["auto", "script"])
def test_without_the_extension_an_untrusted_notebook_shows_the_words_only(
    page: Page, bare: Server, renderer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JupyterLab takes the tags of the picture or the script away, and what stood between them must not stay."""
    monkeypatch.setenv("DEVTRACE_RENDERER", renderer)
    data, _ = mime_bundle(diagnose(make_traces.failing()))
    assert ("<script" in data["text/html"]) == (renderer == "script")
    cell = nbformat.v4.new_code_cell("model(x)", outputs=[nbformat.v4.new_output("display_data", data)])
    notebook = Notebook.open(page, bare, bare.write("untrusted.ipynb", cell), kernel=False)
    shown = notebook.panel.locator(".jp-RenderedHTML")
    expect(shown).to_contain_text("model.out_head.weight and .bias are on cpu")
    expect(shown.locator("svg")).to_have_count(0)
    lines = [line.strip() for line in shown.inner_text().splitlines() if line.strip()]
    assert lines[0].startswith("model.out_head.weight and .bias are on cpu")
    assert lines[-2:] == ["100 ops on cuda:0, 2 ops on cpu.", "1 copy to a device; 8.2 KB copied in total."]


@pytest.mark.breadth
def test_without_the_extension_html_with_a_script_is_alive_in_a_trusted_notebook(page: Page, bare: Server) -> None:
    failing = "%%devtrace\nimport torch\nx = torch.ones(3, device='cuda') + torch.ones(3)"
    cells = ("%load_ext devtrace", "%devtrace renderer script", "%devtrace simulate cuda:1", failing)
    notebook = Notebook.open(page, bare, bare.write("script.ipynb", *cells))
    notebook.run_all()
    page.locator('.dt-report[data-ready="true"]').wait_for()
    expect(page.locator('.dt-report [data-devtrace="finding"][data-rule="device-mismatch"]')).to_have_count(1)
    open_every_view(page)
    notebook.expect_keys_and_theme()
