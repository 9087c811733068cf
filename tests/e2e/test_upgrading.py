"""Html that upgrades itself, in frames as Colab and Kaggle give one to an output, and where no script may run.

Colab and Kaggle are only emulated, by their sandboxes. Colab also sets html and starts its scripts itself, while
Kaggle shows a page of the whole notebook.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import FrameLocator, Page, expect

import make_traces
from devtrace.api.results import diagnose
from devtrace.report import renderer
from devtrace.report.html import fragment
from devtrace.report.mime import mime_bundle
from devtrace.trace.tables import TraceData
from e2e.frames import SANDBOXES, put_in
from e2e.views import GROUND, INK, open_every_view
from samples import training

pytestmark = pytest.mark.e2e

UPGRADED = '.dt-report[data-ready="true"]'


@pytest.fixture(autouse=True)
def scripts_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVTRACE_RENDERER", "script")
    monkeypatch.setattr(renderer, "_chosen", None)


def shown(trace: TraceData) -> str:
    return str(mime_bundle(diagnose(trace))[0]["text/html"])


def framed(page: Page, folder: Path, sandbox: str, content: str) -> FrameLocator:
    path = folder / "outer.html"
    path.write_text(
        f'<!doctype html><meta charset="utf-8"><iframe sandbox="{sandbox}" style="width: 100%; height: 900px" '
        f'srcdoc="{html.escape(content)}"></iframe>',
        encoding="utf-8",
    )
    page.context.set_offline(True)
    page.goto(path.as_uri())
    return page.frame_locator("iframe")


def as_page(output: str, *, head: str = "") -> str:
    return f'<!doctype html><meta charset="utf-8">{head}<body>{output}</body>'


def go_to(page: Page, folder: Path, output: str, *, head: str = "") -> None:
    """Open a page that is written from the disk."""
    path = folder / "page.html"
    path.write_text(as_page(output, head=head), encoding="utf-8")
    page.goto(path.as_uri())


@pytest.mark.one_in(4)
@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("way", ["Colab", "Kaggle"])
def test_in_a_sandboxed_frame_every_view_is_drawn(
    page: Page, tmp_path: Path, sandbox: str, way: Literal["Colab", "Kaggle"]
) -> None:
    output = shown(make_traces.failing())
    frame = framed(page, tmp_path, sandbox, put_in(output) if way == "Colab" else as_page(output))
    frame.locator(UPGRADED).wait_for()
    expect(frame.locator('[data-devtrace="finding"][data-rule="device-mismatch"]')).to_have_count(1)
    open_every_view(frame)
    frame.get_by_role("tab", name="Ops", exact=True).focus()
    page.keyboard.press("ArrowLeft")
    expect(frame.get_by_role("tab", name="Lines", exact=True)).to_be_focused()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_in_a_sandboxed_frame_the_theme_is_that_of_its_page(
    page: Page, tmp_path: Path, sandbox: str, theme: str
) -> None:
    ground = f"<style>html {{ {STYLES[theme]} }}</style>"
    frame = framed(page, tmp_path, sandbox, put_in(shown(make_traces.failing())) + ground)
    frame.locator(UPGRADED).wait_for()
    expect(frame.locator(".dt-report.dt-dark")).to_have_count(int(theme == "dark"))


@pytest.mark.breadth
@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_100_000_ops_are_drawn_in_a_frame(page: Page, tmp_path: Path, sandbox: str) -> None:
    frame = framed(page, tmp_path, sandbox, as_page(shown(make_traces.million(100_000))))
    frame.locator('[data-devtrace="timeline"][data-ready="true"]').wait_for()
    assert int(frame.locator(UPGRADED).get_attribute("data-op-count") or 0) > 100_000


def test_two_copies_and_another_output_all_upgrade_in_one_page(page: Page, tmp_path: Path) -> None:
    output, other = shown(make_traces.failing()), shown(training())
    go_to(page, tmp_path, f"{output}{other}{output}")
    expect(page.locator(UPGRADED)).to_have_count(3)
    expect(page.get_by_role("img", name="Timeline of")).to_have_count(0)


def test_the_static_report_stays_until_the_views_are_drawn(page: Page, tmp_path: Path) -> None:
    """Looked at after each change of the page: one of the two is there, never none."""
    watched = """<script>
    const states = [];
    new MutationObserver(() => {
      const picture = document.querySelector("svg[aria-label^='Timeline of']") !== null;
      const views = [...document.querySelectorAll('.dt-report')].some(each => each.offsetParent && each.checkVisibility(
        { visibilityProperty: true }));
      states.push(picture ? 'picture' : views ? 'views' : 'none');
    }).observe(document, { subtree: true, childList: true });
    </script>"""
    go_to(page, tmp_path, f"{shown(make_traces.failing())}{watched}")
    page.locator('[data-devtrace="timeline"][data-ready="true"]').wait_for()
    states = page.evaluate("states")
    assert "none" not in states
    assert states[-1] == "views"
    assert states.index("views") > 0


def expect_the_static_report(page: Page) -> None:
    expect(page.locator('[data-devtrace="finding"][data-rule="device-mismatch"]')).to_contain_text("out_head")
    expect(page.locator("svg[aria-label^='Timeline of']")).to_be_visible()
    expect(page.locator('[data-devtrace="report"]')).to_have_count(1)
    assert page.locator(UPGRADED).count() == 0


FORBIDDING = {
    "no script": "script-src 'none'",
    "trusted types": "require-trusted-types-for 'script'; trusted-types 'none'",
    "our script only": "script-src 'nonce-a'",
    "no style": "style-src 'none'",
}


@pytest.mark.one_in(4)
@pytest.mark.parametrize("policy", FORBIDDING.values(), ids=list(FORBIDDING))
def test_where_a_policy_forbids_it_the_static_report_stays_without_an_error(
    page: Page, tmp_path: Path, policy: str
) -> None:
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    output = shown(make_traces.failing()).replace("<script>", '<script nonce="a">')
    go_to(page, tmp_path, output, head=head)
    expect_the_static_report(page)
    # Once more after whatever the script does: what it awaits is done when the page answers from a later task.
    page.evaluate("new Promise(done => setTimeout(() => requestAnimationFrame(() => setTimeout(done)), 0))")
    expect_the_static_report(page)


def test_without_its_script_the_html_is_the_static_report(page: Page, tmp_path: Path) -> None:
    output = re.sub("<script.*</script>", "", shown(make_traces.failing()), flags=re.S)
    assert fragment(diagnose(make_traces.failing())) in output
    go_to(page, tmp_path, output)
    expect_the_static_report(page)


def test_a_trace_that_cannot_be_read_leaves_the_static_report(page: Page, tmp_path: Path) -> None:
    output = shown(make_traces.failing()).replace('"format":"devtrace"', '"format":"another"')
    go_to(page, tmp_path, output)
    page.wait_for_function("globalThis.devtraceMount !== undefined")
    expect_the_static_report(page)


STYLES = {theme: f"background: {GROUND[theme]}; color: {INK[theme]}" for theme in ("light", "dark")}


@pytest.mark.one_in(6)
@pytest.mark.parametrize(
    ("theme", "style"), [*STYLES.items(), ("dark", "color: oklch(0.95 0 0)")], ids=["light", "dark", "transparent"]
)
@pytest.mark.parametrize("system", ["light", "dark"])
def test_the_theme_is_that_of_the_page_and_not_of_the_system(
    page: Page, tmp_path: Path, theme: str, style: str, system: Literal["light", "dark"]
) -> None:
    page.emulate_media(color_scheme=system)
    go_to(page, tmp_path, shown(make_traces.failing()), head=f"<style>body {{ {style} }}</style>")
    report = page.locator(UPGRADED)
    report.wait_for()
    assert ("dt-dark" in (report.get_attribute("class") or "")) == (theme == "dark")
