"""The renderer extension in a real VS Code without a kernel: in a trusted folder and in restricted mode."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Frame, Page, expect

import make_traces
import needs
from devtrace.api.results import diagnose
from devtrace.report import renderer
from devtrace.report.mime import mime_bundle
from devtrace.trace.tables import TraceData
from e2e import vscode
from e2e.views import open_every_view
from e2e.vscode import VSCode

pytestmark = pytest.mark.foreign

REPORT = '.dt-report[data-ready="true"]'


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    needs.present(vscode.is_installed() and vscode.VSIX.exists(), vscode.HOW_TO_GET_IT)


@pytest.fixture(scope="module")
def restricted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VSCode]:
    with vscode.serve(tmp_path_factory.mktemp("restricted"), trusted=False) as running:
        yield running


@pytest.fixture(scope="module")
def dark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VSCode]:
    settings: dict[str, Any] = {"workbench.colorTheme": "Default Dark+"}
    with vscode.serve(tmp_path_factory.mktemp("dark"), **settings) as running:
        yield running


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VSCode]:
    with vscode.serve(tmp_path_factory.mktemp("bare"), extension=False) as running:
        yield running


def bundle(trace: TraceData, how: str = "static") -> dict[str, object]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(renderer, "_chosen", how)
        return mime_bundle(diagnose(trace))[0]


def expect_every_view(outputs: Frame) -> None:
    """Expect the finding, and every view, by mouse and by keyboard."""
    expect(outputs.locator('[data-devtrace="finding"][data-rule="device-mismatch"]')).to_contain_text("model.out_head")
    open_every_view(outputs)
    outputs.get_by_role("tab", name="Ops", exact=True).press("ArrowLeft")
    expect(outputs.get_by_role("tab", name="Lines", exact=True)).to_be_focused()


def test_in_restricted_mode_a_committed_report_is_alive(page: Page, restricted: VSCode) -> None:
    name = restricted.write("a.ipynb", bundle(make_traces.failing()))
    outputs = restricted.open(page, name, REPORT)
    expect(page.get_by_text("Restricted Mode", exact=True).first).to_be_visible()
    expect_every_view(outputs)
    expect(outputs.locator(".dt-report.dt-dark")).to_have_count(0)


def test_in_a_trusted_folder_the_report_is_alive_and_dark_as_the_editor(page: Page, dark: VSCode) -> None:
    outputs = dark.open(page, dark.write("a.ipynb", bundle(make_traces.failing())), REPORT)
    expect_every_view(outputs)
    expect(outputs.locator(".dt-report.dt-dark")).to_have_count(1)


def test_100_000_ops_are_painted(page: Page, dark: VSCode) -> None:
    name = dark.write("large.ipynb", bundle(make_traces.million(100_000)))
    outputs = dark.open(page, name, '[data-devtrace="timeline"][data-ready="true"]')
    assert int(outputs.locator(REPORT).get_attribute("data-op-count") or 0) > 100_000


def test_what_is_no_trace_is_refused_with_a_sentence(page: Page, dark: VSCode) -> None:
    name = dark.write("other.ipynb", {"application/vnd.devtrace.v1+json": {"format": "another"}})
    outputs = dark.open(page, name, ".dt-refused")
    expect(outputs.locator(".dt-refused")).to_contain_text("another")


def test_without_the_extension_the_html_upgrades_itself_in_a_trusted_folder(page: Page, bare: VSCode) -> None:
    name = bare.write("a.ipynb", bundle(make_traces.failing(), how="script"))
    expect_every_view(bare.open(page, name, REPORT))


def test_without_the_extension_the_static_report_shows(page: Page, bare: VSCode) -> None:
    name = bare.write("static.ipynb", bundle(make_traces.failing()))
    outputs = bare.open(page, name, '[data-devtrace="report"]')
    expect(outputs.locator("svg[aria-label^='Timeline of']")).to_be_visible()
