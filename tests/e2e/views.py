"""The views alone in a page: what `devtraceMount` shows of a trace, without Jupyter and without a kernel."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Frame, FrameLocator, Locator, Page

from built import SCRIPT
from devtrace.trace.format import encode
from devtrace.trace.tables import TraceData
from folders import ROOT

TABS = ("Timeline", "Modules", "Lines", "Ops")
INK = {"light": "#000000", "dark": "#ffffff"}
GROUND = {"light": "#ffffff", "dark": "#111417"}

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"


def open_view(root: Page | Frame | FrameLocator, tab: str) -> Locator:
    """Choose a tab and wait until its view has painted."""
    root.get_by_role("tab", name=tab, exact=True).click()
    view = root.locator(f'[data-devtrace="{tab.lower()}"][data-ready="true"]')
    view.wait_for()
    return view


def open_every_view(root: Page | Frame | FrameLocator) -> None:
    for tab in TABS:
        open_view(root, tab)


def violations(page: Page, within: str = "html") -> list[str]:
    """Return what axe-core finds wrong with a part of the page, one line each."""
    page.add_script_tag(path=AXE)
    found = page.evaluate("within => axe.run(within)", within)["violations"]
    return [f"{rule['id']}: {rule['help']}: {node['html'][:160]}" for rule in found for node in rule["nodes"][:3]]


def point_at(page: Page, x: float, y: float) -> None:
    """Move the pointer, and wait until the page has drawn what is under it."""
    page.mouse.move(x, y)
    page.evaluate("() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))")


class Views:
    """A page that holds one report."""

    def __init__(self, page: Page, theme: str = "light") -> None:
        self.page = page
        page.set_content(
            f'<!doctype html><html lang="en"><title>views</title><body style="background: {GROUND[theme]}">'
            f'<main><h1 style="color: {INK[theme]}">views</h1><div id="slot" data-dt-theme="{theme}"></div></main>'
        )
        page.add_script_tag(content=SCRIPT.read_text(encoding="utf-8"))

    def mount(self, trace: TraceData | dict[str, Any] | str) -> Locator:
        """Show a trace (or the text of a file that may be none) and wait until it, or a sentence, stands there."""
        data = encode(trace) if isinstance(trace, TraceData) else trace
        text = data if isinstance(data, str) else json.dumps(data)
        self.page.evaluate(
            "text => { window.unmount?.(); window.unmount = devtraceMount(document.getElementById('slot'), text); }",
            text,
        )
        report = self.page.locator('[data-devtrace="report"][data-ready="true"]')
        report.wait_for()
        # Its timeline gets its height with the first frame: before that nothing on it can be pointed at.
        for _ in self.page.locator('[data-devtrace="timeline"]').all():
            self.page.locator('[data-devtrace="timeline"][data-ready="true"]').wait_for()
        return report

    def open(self, tab: str) -> Locator:
        return open_view(self.page, tab)

    @property
    def is_refused(self) -> bool:
        """Return whether a sentence stands where a report would."""
        return self.page.locator(".dt-refused").count() == 1
