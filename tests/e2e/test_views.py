"""The views in a real browser: one selection through all, by pointer and keyboard, no leaks, themes, accessibility."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

import make_traces
from devtrace.trace.format import encode
from e2e.views import TABS, Views, open_every_view, violations

pytestmark = pytest.mark.e2e


@pytest.fixture
def views(page: Page) -> Views:
    """Give the views of the story of the head."""
    views = Views(page)
    views.mount(make_traces.failing())
    return views


def selected(page: Page, view: str) -> list[str]:
    """Return what is selected in a view: the paths of modules, the numbers of lines, the texts of ops."""
    within = f'[data-devtrace="{view}"] [aria-selected="true"]:not([hidden])'
    read = {
        "modules": "e => e.dataset.module",
        "lines": "e => e.dataset.line",
        "ops": "e => e.querySelector('.dt-op-name').textContent",
        "findings": "e => e.dataset.rule",
    }[view]
    return list(page.eval_on_selector_all(within, f"all => all.map({read})"))


def test_a_finding_is_shown_whole(page: Page) -> None:
    report = Views(page).mount(make_traces.failing())
    finding = report.locator('[data-devtrace="finding"][data-rule="device-mismatch"][data-severity="error"]')
    for text in ("In[7] line 6", "model.out_head(x[:, -1])", "aten.addmm", "which could not see it", "In[5] line 1"):
        expect(finding).to_contain_text(text)
    expect(finding.locator('[data-device="cuda:0"]')).to_contain_text("simulated")


def test_advice_that_has_no_code_is_not_offered_as_a_fix_to_copy(page: Page) -> None:
    views = Views(page)
    trace = encode(make_traces.failing())
    words = ("compute with it on the device, or move it once", "read it later: `losses.append(loss.detach())`")
    for words_of_fix, copied in zip(words, (0, 1), strict=True):
        views.mount({**trace, "findings": [{**trace["findings"][0], "help": words_of_fix, "edits": []}]})
        expect(page.locator(".dt-help")).to_have_text(words_of_fix.replace("`", ""))
        expect(page.get_by_role("button", name="Copy fix")).to_have_count(copied)
        expect(page.get_by_role("button", name="Copy all")).to_have_count(1)


def test_picking_a_finding_lights_up_its_op_module_and_line_everywhere(page: Page, views: Views) -> None:
    page.locator('[data-devtrace="finding"]').click()
    open_every_view(page)
    assert selected(page, "findings") == ["device-mismatch"]
    assert selected(page, "modules") == ["model.out_head"]
    assert selected(page, "lines") == ["6"]
    assert len(selected(page, "ops")) == 1
    assert selected(page, "ops")[0].startswith("aten.addmm")
    views.open("Timeline")
    expect(page.locator('[data-devtrace="timeline"] [role="status"]').last).to_contain_text("aten.addmm")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("tab", "target"),
    [
        ("Modules", '[data-module="model.out_head"]'),
        ("Lines", '[data-line="6"]'),
    ],
)
def test_a_pick_in_any_view_is_a_pick_in_all(page: Page, views: Views, tab: str, target: str) -> None:
    open_every_view(page)
    views.open(tab).locator(target).first.click()
    assert selected(page, "modules") == ["model.out_head"]


def test_an_op_is_picked_on_the_canvas(page: Page) -> None:
    views = Views(page)
    views.mount(make_traces.timed((0, 1000), (2000, 1000)))
    plot = page.locator(".dt-plot")
    box = plot.bounding_box()
    assert box
    plot.click(position={"x": box["width"] * 0.85, "y": box["height"] - 30})
    views.open("Ops")
    assert selected(page, "ops") == ["aten.op1"]


def test_the_module_view_shows_where_parameters_live(views: Views) -> None:
    modules = views.open("Modules")
    expect(modules.locator('[data-module="model.out_head"]')).to_have_attribute("data-device", "cpu")
    expect(modules.locator('[data-module="model.tok_emb"]')).to_have_attribute("data-device", "cuda:0")
    expect(modules.locator('[data-module="model.norm"]')).to_contain_text("never ran")
    expect(modules.locator('[data-module="model.blocks.0"]')).to_contain_text("×6")
    expect(modules.locator('[data-module="model"]')).to_have_attribute("data-device", "cpu cuda:0")


def test_the_lines_open_at_the_error(page: Page) -> None:
    views = Views(page)
    trace = encode(make_traces.failing())
    cell = trace["strings"].index(make_traces.CLASSIFY)
    above = 30  # more than the view holds, few enough to be shown whole
    trace["strings"][cell] = "x = 1\n" * above + make_traces.CLASSIFY
    trace["sources"]["line"] = [1, 1, 1 - above]
    views.mount(trace)
    lines = views.open("Lines")
    expect(lines.locator('[data-line="6"]')).to_be_in_viewport()
    expect(lines.locator(f'[data-line="{1 - above}"]')).not_to_be_in_viewport()


def test_a_fold_opens_and_folds_again(views: Views) -> None:
    modules = views.open("Modules")
    expect(modules.locator('[data-module="model.blocks.3"]')).to_have_count(0)
    modules.locator(".dt-repeats").click()
    expect(modules.locator('[data-module="model.blocks.3"]')).to_be_visible()
    modules.get_by_role("button", name="Fold").click()
    expect(modules.locator('[data-module="model.blocks.3"]')).to_have_count(0)


def test_ops_are_filtered_and_sorted(views: Views) -> None:
    ops = views.open("Ops")
    ops.get_by_role("searchbox").fill("addmm blocks.2")
    expect(ops.get_by_role("status")).to_have_text("4 of 102")
    ops.get_by_role("button", name="Took").click()
    expect(ops.get_by_role("columnheader", name="Took")).to_have_attribute("aria-sort", "descending")
    ops.get_by_role("searchbox").fill("")
    ops.get_by_label("Filter ops by device").select_option(label="cpu")
    expect(ops.get_by_role("status")).to_have_text("2 of 102")


@pytest.mark.breadth
def test_an_ops_filter_without_hits_is_explained(views: Views) -> None:
    ops = views.open("Ops")
    nothing = ops.get_by_text("No op passes these filters.")
    expect(nothing).to_be_hidden()
    ops.get_by_role("searchbox").fill("no such op")
    expect(nothing).to_be_visible()
    ops.get_by_role("searchbox").fill("")
    expect(nothing).to_be_hidden()


def test_everything_can_be_reached_with_the_keyboard_alone(page: Page) -> None:
    views = Views(page)
    views.mount(make_traces.training(2000))
    page.locator('[data-devtrace="finding"]').focus()
    page.keyboard.press("Enter")
    assert selected(page, "findings") == ["host-sync"]
    page.get_by_role("tab", name="Timeline").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Modules")).to_be_focused()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Ops")).to_have_attribute("aria-selected", "true")
    page.get_by_role("grid", name="Ops").focus()
    page.keyboard.press("End")
    page.keyboard.press("ArrowUp")
    expect(page.locator('[data-devtrace="ops"] [aria-selected="true"]')).to_be_visible()
    page.get_by_role("tab", name="Timeline").click()
    plot = page.get_by_role("application")
    plot.focus()
    for key in ("+", "+", "ArrowRight", "ArrowLeft", "-", "Home", "Enter", "Shift+ArrowLeft"):
        page.keyboard.press(key)
    page.keyboard.press("Escape")
    assert selected(page, "findings") == []


def test_tab_goes_through_the_findings_of_the_timeline_and_on(page: Page) -> None:
    views = Views(page)
    trace = encode(make_traces.failing())
    trace["findings"] = [{**trace["findings"][0], "op": op, "rule": f"rule {op}"} for op in (3, 9)]
    views.mount(trace)
    page.get_by_role("application").focus()
    picked = []
    for _ in range(2):
        page.keyboard.press("Tab")
        picked += selected(page, "findings")
    assert picked == ["rule 3", "rule 9"]
    page.keyboard.press("Tab")
    expect(page.get_by_role("application")).not_to_be_focused()


def test_the_wheel_scrolls_the_page_until_the_timeline_has_the_focus(page: Page) -> None:
    views = Views(page)
    views.mount(make_traces.training(2000))
    page.evaluate("() => { document.body.style.paddingBottom = '3000px'; }")
    plot = page.get_by_role("application")
    plot.hover()
    # A page may glide for a while: where it comes to rest is read, not where it is on its way.
    page.evaluate("() => { addEventListener('scrollend', () => { window.isAtRest = true; }, { once: true }); }")
    page.mouse.wheel(0, 120)
    page.wait_for_function("window.isAtRest && window.scrollY > 0")
    plot.click(position={"x": 400, "y": 100})
    expect(plot).to_be_focused()
    before = page.evaluate("window.scrollY")
    picture = page.evaluate(PICTURE)
    page.mouse.wheel(0, -120)
    page.wait_for_function(f"before => ({PICTURE})() !== before", arg=picture)  # it has zoomed
    assert page.evaluate("window.scrollY") == before


PICTURE = "() => document.querySelector('.dt-canvas').toDataURL()"
COUNT_OBSERVERS = """() => {
  window.observers = 0;
  for (const name of ['ResizeObserver', 'MutationObserver', 'IntersectionObserver']) {
    const { observe, disconnect } = window[name].prototype;
    window[name].prototype.observe = function (...rest) {
      window.observers += this.seen ? 0 : 1; this.seen = true; return observe.apply(this, rest); };
    window[name].prototype.disconnect = function () {
      window.observers -= this.seen ? 1 : 0; this.seen = false; return disconnect.apply(this); };
  }
}"""


MOUNT_AND_DISPOSE = """async ([text, tabs, times]) => {
  const slot = document.getElementById('slot');
  const shown = async selector => {
    while (!slot.querySelector(selector)) await new Promise(requestAnimationFrame);
  };
  for (let i = 0; i < times; i++) {
    const dispose = devtraceMount(slot, text);
    await shown('[data-devtrace="report"][data-ready="true"]');
    for (const [at, tab] of tabs.entries()) {
      slot.querySelectorAll('[role="tab"]')[at].click();
      await shown(`[data-devtrace="${tab.toLowerCase()}"][data-ready="true"]`);
    }
    dispose();
  }
}"""


@pytest.mark.breadth
def test_a_hundred_mounts_leave_no_listener_node_or_observer(page: Page) -> None:
    Views(page)
    page.evaluate(COUNT_OBSERVERS)
    client = page.context.new_cdp_session(page)
    trace = json.dumps(encode(make_traces.failing(2)))

    def counted() -> dict[str, int]:
        client.send("HeapProfiler.collectGarbage")
        counters = client.send("Memory.getDOMCounters")
        return {
            "observers": page.evaluate("observers"),
            **{name: counters[name] for name in ("nodes", "jsEventListeners")},
        }

    def once_no_more_than(nodes: int) -> dict[str, int]:
        """Count again after each frame: the last report may be in one that is yet to be drawn; a leak stays."""
        for _ in range(20):
            if (now := counted())["nodes"] <= nodes:
                break
            page.evaluate("() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        return now

    page.evaluate(MOUNT_AND_DISPOSE, [trace, TABS, 3])
    first = counted()
    assert first["observers"] == 0
    page.evaluate(MOUNT_AND_DISPOSE, [trace, TABS, 100])
    last = once_no_more_than(first["nodes"] + 20)
    assert last["observers"] == 0
    assert last["jsEventListeners"] <= first["jsEventListeners"]
    assert last["nodes"] <= first["nodes"] + 20


@pytest.mark.one_in(2)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_theme_reaches_the_canvas(page: Page, theme: str) -> None:
    views = Views(page, theme)
    views.mount(make_traces.failing())
    views.open("Timeline")
    corner = page.evaluate(
        "() => [...document.querySelector('.dt-canvas').getContext('2d').getImageData(2, 2, 1, 1).data]"
    )
    assert corner[:3] == ([255, 255, 255] if theme == "light" else [17, 20, 23])


def test_a_theme_that_changes_is_followed(page: Page, views: Views) -> None:
    views.open("Timeline")
    page.evaluate(
        "() => { document.getElementById('slot').removeAttribute('data-dt-theme');"
        " document.body.dataset.jpThemeLight = 'false'; }"
    )
    page.wait_for_function(
        "document.querySelector('.dt-canvas').getContext('2d').getImageData(2, 2, 1, 1).data[0] === 17"
    )


@pytest.mark.one_in(4)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [500, 1280])
def test_axe_finds_no_violation_in_any_view(page: Page, theme: str, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    views = Views(page, theme)
    views.mount(make_traces.failing())
    page.locator('[data-devtrace="finding"]').click()
    for tab in TABS:
        views.open(tab)
        assert violations(page) == [], tab


@pytest.mark.breadth
def test_a_refusal_and_a_report_without_findings_are_accessible_too(page: Page) -> None:
    views = Views(page)
    for shown in ("no trace", make_traces.threads()):
        views.mount(shown)
        assert violations(page) == []


@pytest.mark.breadth
def test_with_forced_colours_the_views_still_paint(page: Page) -> None:
    page.emulate_media(forced_colors="active", reduced_motion="reduce")
    Views(page).mount(make_traces.failing())
    open_every_view(page)
