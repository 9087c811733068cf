"""`report.to_html` in a real browser, from a file and without a network: the same views as in the notebook."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from pathlib import Path
from runpy import run_path

import pytest
import torch
from playwright.sync_api import Locator, Page, expect
from torch import nn

import devtrace
import make_traces
from devtrace.api.results import diagnose
from devtrace.diagnosis.findings import Edit
from devtrace.report.page import to_html
from devtrace.trace.memory_curves import MOST_POINTS, curves, lives_until_use
from devtrace.trace.tables import TraceData
from e2e.views import open_every_view, open_view
from folders import ROOT
from samples import training, with_memory
from traces import odd_trace

pytestmark = pytest.mark.e2e


def opened(page: Page, trace: TraceData, folder: Path) -> Locator:
    """Return the report of a page that was written, opened from the disk while nothing can be reached."""
    path = diagnose(trace).to_html(folder / "run.html")
    page.context.set_offline(True)
    page.goto(path.as_uri())
    report = page.locator('[data-devtrace="report"][data-ready="true"]')
    report.wait_for()
    return report


@pytest.mark.one_in(3)
@pytest.mark.parametrize("trace", [make_traces.failing(), training(400), odd_trace()])
def test_every_view_opens_from_a_file_without_a_network(trace: TraceData, page: Page, tmp_path: Path) -> None:
    report = opened(page, trace, tmp_path)
    assert report.get_attribute("data-op-count") == str(len(trace.ops))
    open_every_view(page)


def test_a_finding_picked_on_the_page_is_selected_in_its_other_views(page: Page, tmp_path: Path) -> None:
    report = opened(page, make_traces.failing(), tmp_path)
    report.locator('[data-devtrace="finding"][data-rule="device-mismatch"]').click()
    page.get_by_role("tab", name="Ops", exact=True).click()
    page.locator('[data-devtrace="ops"] [aria-selected="true"] .dt-op-name').first.wait_for()


def losses_and_masks() -> None:
    model = nn.Linear(4, 2).to("cuda")
    for number in range(60):
        mask = torch.tril(torch.ones(4, 2)).to("cuda")
        loss = (model(torch.ones(4, 4, device="cuda")) * mask).mean()
        loss.backward()
        print(number, loss.item())


def test_each_of_several_findings_shows_its_fix_and_opens_on_a_click(page: Page, tmp_path: Path) -> None:
    """New users saw the fix of the first one alone, and no sign that the others open."""
    with devtrace.record(simulate="cuda:1") as recording:
        losses_and_masks()
    report = opened(page, recording.trace, tmp_path)
    first, second = report.locator('[data-devtrace="finding"][data-severity="warning"]').all()
    expect(first.locator(".dt-story")).to_be_visible()
    expect(second.locator(".dt-story")).to_be_hidden()
    fix = second.locator(".dt-fix-line")
    expect(fix).to_be_visible()
    expect(fix).to_contain_text("Fix")
    assert second.evaluate("row => getComputedStyle(row, '::after').borderStyle").startswith("solid")  # an arrow
    assert second.evaluate("row => getComputedStyle(row).cursor") == "pointer"
    second.click()
    expect(second.locator(".dt-story")).to_be_visible()
    expect(first.locator(".dt-story")).to_be_hidden()
    expect(first.locator(".dt-fix-line")).to_be_visible()
    expect(second.locator(".dt-edit .dt-tag").first).to_have_text("not tried")


def test_each_line_shows_how_long_its_ops_took(page: Page, tmp_path: Path) -> None:
    with devtrace.record(simulate="cuda:1") as recording:
        losses_and_masks()
    opened(page, recording.trace, tmp_path)
    lines = open_view(page, "Lines")
    expect(lines.get_by_role("columnheader", name="Time")).to_be_visible()
    row = lines.get_by_role("row").filter(has_text="loss.backward()")
    expect(row.locator(".dt-time")).to_have_text(re.compile(r"^\d[\d.]* (ns|µs|ms|s)$"))


def test_by_what_a_fix_of_a_cost_was_proven_is_in_its_story(page: Page, tmp_path: Path) -> None:
    with devtrace.record(simulate="cuda:1") as recording:
        losses_and_masks()
    proof = "the same output and 3 values as without it, 59 copies or waits fewer (60 before, 1 after)"
    edit = asdict(Edit("train.py", None, 1, "x = 1", "x = 2", "proven"))
    first, *others = recording.report.trace.findings or ()
    trace = replace(recording.report.trace, findings=({**first, "edits": [edit], "proof": proof}, *others))
    page.goto(to_html(replace(recording.report, trace=trace), tmp_path / "run.html").as_uri())
    story = page.locator('[data-devtrace="finding"]').first.locator(".dt-story")
    expect(story).to_contain_text(proof)
    expect(story.get_by_text("Proven", exact=True)).to_be_visible()
    expect(story.get_by_text("not tried")).to_have_count(0)


def test_memory_is_stacked_by_kind_and_what_held_it_at_the_peak_is_named(page: Page, tmp_path: Path) -> None:
    opened(page, with_memory(limit=1000), tmp_path)
    memory = open_view(page, "Memory")
    expect(memory.get_by_role("button", name="at most 600 B of 1000 B")).to_be_visible()
    kinds = memory.locator("path").evaluate_all("areas => areas.map(area => area.dataset.kind)")
    assert kinds == ["parameter", "activation"]
    most = memory.get_by_role("listitem").first
    for text in ("activations", "model.blocks", "500 B"):
        expect(most).to_contain_text(text)


@pytest.mark.breadth
def test_the_op_of_the_peak_of_memory_is_selected_in_the_other_views(page: Page, tmp_path: Path) -> None:
    opened(page, with_memory(limit=0), tmp_path)
    page.get_by_role("tab", name="Memory", exact=True).click()
    page.get_by_role("button", name="at most 600 B", exact=True).press("Enter")
    page.get_by_role("tab", name="Ops", exact=True).click()
    expect(page.locator('[data-devtrace="ops"] [aria-selected="true"] .dt-op-name')).to_have_count(1)


def test_the_memory_of_100_000_ops_is_drawn_from_a_curve_of_few_points(page: Page, tmp_path: Path) -> None:
    trace = make_traces.million(100_000)
    known = tuple(curves(trace, lives_until_use(trace), {}, is_exact=False))
    assert 0 < max(len(each.ops) for each in known) <= MOST_POINTS
    opened(page, replace(trace, memory=known), tmp_path)
    memory = open_view(page, "Memory")
    expect(memory.locator("svg").first).to_be_visible()
    drawn = memory.locator("path").evaluate_all("areas => areas.map(area => area.getAttribute('d').length)")
    assert max(drawn) <= 40 * 2 * MOST_POINTS


def test_a_trace_without_memory_has_no_tab_for_it(page: Page, tmp_path: Path) -> None:
    opened(page, make_traces.failing(), tmp_path)
    expect(page.get_by_role("tab", name="Ops", exact=True)).to_be_visible()
    expect(page.get_by_role("tab", name="Memory")).to_have_count(0)


def test_a_page_asks_for_nothing(page: Page, tmp_path: Path) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    opened(page, make_traces.failing(), tmp_path)
    assert [url for url in asked if not url.startswith("file:")] == []
    assert len(asked) == 1


@pytest.mark.breadth
def test_the_gallery_shows_every_golden_trace_in_both_themes(page: Page, tmp_path: Path) -> None:
    gallery = run_path(str(ROOT / "tools" / "gallery.py"))
    shown = gallery["golden_traces"]()
    (tmp_path / "gallery.html").write_text(gallery["page"](shown), encoding="utf-8")
    page.goto((tmp_path / "gallery.html").as_uri())
    expect(page.locator('[data-devtrace="report"][data-ready="true"]')).to_have_count(2 * len(shown))
    expect(page.locator(".dt-dark.dt-report")).to_have_count(len(shown))
    assert len(shown) > 2


def test_without_scripts_the_page_shows_the_findings_and_the_picture(page: Page, tmp_path: Path) -> None:
    path = diagnose(make_traces.failing()).to_html(tmp_path / "run.html")
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("script-src 'unsafe-inline'", "script-src 'none'"), encoding="utf-8")
    page.goto(path.as_uri())
    assert page.locator('[data-devtrace="finding"][data-rule="device-mismatch"]').is_visible()
    assert page.locator("svg[aria-label^='Timeline of']").is_visible()


@pytest.mark.breadth
def test_the_site_is_searched_from_a_file_and_its_reports_follow_its_switch(page: Page, tmp_path: Path) -> None:
    assets = (ROOT / "tools" / "site").as_uri()  # a search is a worker, and a browser starts none for a file
    (tmp_path / "search.js").write_text("addEventListener('message', sent => postMessage([sent.data, 'found']))")
    (tmp_path / "site.html").write_text(
        f'<script src="{assets}/iframe-worker.js"></script><body data-md-color-scheme="slate">'
        f'<script src="{assets}/theme.js"></script>'
    )
    page.goto((tmp_path / "site.html").as_uri())
    asked = (
        "new Promise(done => { const w = new Worker('search.js'); w.addEventListener('message', e => done(e.data)); "
    )
    assert page.evaluate(f"() => {asked} w.postMessage('copies') }})") == ["copies", "found"]
    expect(page.locator("body")).to_have_attribute("data-dt-theme", "dark")
    page.evaluate("document.body.dataset.mdColorScheme = 'default'")
    expect(page.locator("body")).to_have_attribute("data-dt-theme", "light")
