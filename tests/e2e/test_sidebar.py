"""The sidebar in a real browser: the whole story from the panel, by mouse and keyboard, and what it lists and shows."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from e2e.lab import Lab
from e2e.notebook import Notebook
from e2e.server import Server
from e2e.sidebar import (
    STORY,
    Sidebar,
    active_cell,
    execution_count,
    expect_selected,
    expect_selected_with,
    expect_source,
    source,
)
from e2e.views import violations

pytestmark = pytest.mark.e2e

COMMANDS = (
    "Trace This Cell",
    "Trace Every Cell",
    "Show Panel",
    "Open Last Trace",
    "Simulate Devices…",
    "Show Ledger of This Line",
)
LOAD = "%load_ext devtrace\nimport torch"
PANEL = "#devtrace-sidebar"


def expect_fixed(notebook: Notebook, sidebar: Sidebar, before: list[str]) -> None:
    """Expect the edit in its cell, selected and not run; one undo takes it back; then all runs clean."""
    page = notebook.page
    expect(page.locator(".jp-Notebook.jp-mod-editMode")).to_be_attached()
    changed = active_cell(page)
    page.wait_for_function(
        "([at, before]) => before !=="
        " jupyterapp.shell.currentWidget.content.model.cells.get(at).sharedModel.getSource()",
        arg=[changed, before[changed]],
    )
    after = source(notebook, changed)
    expect_selected_with(page, ".to(")
    assert [source(notebook, i) for i in range(len(before)) if i != changed] == [
        text for i, text in enumerate(before) if i != changed
    ]
    assert execution_count(notebook, changed) == changed + 1
    page.keyboard.press("Control+z")
    expect_source(notebook, changed, before[changed])
    page.keyboard.press("Control+Shift+z")
    expect_source(notebook, changed, after)
    notebook.run_all()
    sidebar.expect_traces(f"In[{2 * len(before)}]", f"In[{len(before)}]")
    for severity in ("error", "warning"):
        found = sidebar.findings.and_(page.locator(f"[data-severity={severity}]"))
        expect(found.filter(visible=True)).to_have_count(0)


def test_run_see_the_finding_jump_insert_the_fix_run_again_clean(lab: Lab) -> None:
    expect_the_story(lab.open("story.ipynb", *STORY))


@pytest.mark.breadth
def test_the_same_in_notebook_7(page: Page, server: Server) -> None:
    expect_the_story(Notebook.open(page, server, server.write("story-7.ipynb", *STORY), "notebook"))


def expect_the_story(notebook: Notebook) -> None:
    page = notebook.page
    sidebar = Sidebar.open(notebook, link=None)
    notebook.run_all()
    finding = sidebar.findings.first
    expect(finding).to_have_attribute("data-rule", "device-mismatch")
    expect(finding).to_have_attribute("data-severity", "error")

    finding.get_by_role("button", name="In[2] line 11").click()
    page.wait_for_function("jupyterapp.shell.currentWidget.content.activeCellIndex === 1")
    expect(page.locator(".jp-Notebook.jp-mod-editMode")).to_be_attached()
    expect_selected(page, "self.out_head(self.body(x))")
    finding.get_by_role("button", name="In[5] line 1").click()
    page.wait_for_function("jupyterapp.shell.currentWidget.content.activeCellIndex === 4")

    before = [source(notebook, index) for index in range(len(STORY))]
    finding.get_by_role("button", name="Insert").first.click()
    expect_fixed(notebook, sidebar, before)


@pytest.mark.breadth
def test_the_same_by_keyboard_alone(lab: Lab) -> None:
    page = lab.page
    notebook = lab.open("keyboard.ipynb", *STORY)
    notebook.cell(0).locator(".jp-InputArea-editor").click()
    notebook.run_all()
    before = [source(notebook, index) for index in range(len(STORY))]
    page.keyboard.press("Control+Alt+d")
    sidebar = Sidebar(page)
    sidebar.wait_link("connected")
    expect(sidebar.tracing).to_be_focused()
    page.keyboard.press("Space")
    expect(sidebar.tracing).to_be_checked()
    expect(sidebar.tracing).to_be_focused()
    page.keyboard.press("Space")
    expect(sidebar.tracing).not_to_be_checked()
    page.keyboard.press("Tab")
    expect(sidebar.simulated(2)).to_be_focused()
    page.keyboard.press("ArrowRight")
    expect(sidebar.simulated(4)).to_be_checked()
    page.keyboard.press("ArrowLeft")
    expect(sidebar.simulated(2)).to_be_checked()
    expect(sidebar.findings.first).to_be_visible()
    tab_to(page, "Go to In[2] line 11")
    page.keyboard.press("Enter")
    page.wait_for_function("jupyterapp.shell.currentWidget.content.activeCellIndex === 1")
    expect_selected(page, "self.out_head(self.body(x))")
    page.keyboard.press("Control+Alt+d")
    expect(sidebar.tracing).to_be_focused()
    tab_to(page, "Nobody ran this yet")
    page.keyboard.press("Enter")
    expect_fixed(notebook, sidebar, before)
    page.keyboard.press("Control+Alt+d")
    tab_to(page, "Show the trace of")
    page.keyboard.press("Enter")
    notebook.page.locator(".dt-tab-page [data-devtrace=report][data-ready=true]").wait_for()


def tab_to(page: Page, title: str) -> None:
    """Press Tab until the element with this title has the focus."""
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("title => (document.activeElement?.title ?? '').startsWith(title)", title):
            return
    raise AssertionError(f"60 times Tab does not lead to {title!r}")


def test_axe_finds_no_violation(lab: Lab) -> None:
    page = lab.page
    notebook = lab.open("axe.ipynb", *STORY)
    sidebar = Sidebar.open(notebook, link="absent")
    assert violations(page, PANEL) == []
    notebook.run_all()
    expect(sidebar.findings).to_have_count(1)
    expect(sidebar.row_of("x")).to_be_visible()
    sidebar.traces.first.click()
    page.locator(".dt-tab-page [data-devtrace=report][data-ready=true]").wait_for()
    for theme, light in (("JupyterLab Dark", "false"), ("JupyterLab Light", "true")):
        notebook.command("apputils:change-theme", theme=theme)
        expect(page.locator("body")).to_have_attribute("data-jp-theme-light", light)
        assert violations(page, PANEL) == []
        assert violations(page, ".dt-tab-page") == []


def test_every_cell_is_traced_while_the_switch_is_on(lab: Lab) -> None:
    cells = (LOAD, "torch.ones(3) + 1", "1 + 1", "torch.ones(3) * 2")
    notebook = lab.open("every.ipynb", *cells, run="first")
    sidebar = Sidebar.open(notebook)
    sidebar.tracing.click()
    expect(sidebar.tracing).to_be_checked()
    for index in (1, 2, 3):
        notebook.run(index)
    sidebar.expect_traces("In[4]", "In[2]")
    sidebar.tracing.click()
    expect(sidebar.tracing).not_to_be_checked()
    notebook.run(1)
    notebook.run(2)
    sidebar.expect_traces("In[4]", "In[2]")


@pytest.mark.breadth
@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_a_press_counts_though_the_panel_changes_before_the_release(lab: Lab, by: str) -> None:
    page = lab.page
    notebook = lab.open(f"press-{by}.ipynb", LOAD, run="first")
    sidebar = Sidebar.open(notebook)
    expect(sidebar.simulated(2)).to_be_enabled()
    if by == "mouse":
        sidebar.simulated(2).hover()
        page.mouse.down()
    else:
        sidebar.simulated(2).focus()
        page.keyboard.down(" ")
    page.evaluate(
        "() => { void jupyterapp.shell.currentWidget.sessionContext.session.kernel"
        ".requestExecute({ code: '%devtrace on' }); }"
    )
    page.wait_for_function("jupyterapp.commands.isToggled('devtrace:trace-every-cell')")
    if by == "mouse":
        page.mouse.up()
    else:
        page.keyboard.up(" ")
    expect(sidebar.simulated(2)).to_be_checked()
    expect(sidebar.tracing).to_be_checked()


@pytest.mark.breadth
def test_one_cell_is_traced_from_its_toolbar_and_stays_as_it_is(lab: Lab) -> None:
    notebook = lab.open("toolbar.ipynb", "import torch", "torch.ones(3) + 1", run="first")
    sidebar = Sidebar.open(notebook, link="absent")
    notebook.cell(1).locator(".jp-InputArea-editor").click()
    traces = notebook.panel.get_by_role("button", name="Run this cell and show what ran on which device")
    traces.click()
    report = notebook.wait_ready("report")
    expect(report).to_have_attribute("data-op-count", "2")
    sidebar.wait_link("connected")
    sidebar.expect_traces("In[2]")
    assert source(notebook, 1) == "torch.ones(3) + 1"
    notebook.run(1)
    expect(notebook.page.locator('[data-devtrace="report"]')).to_have_count(0)
    expect(traces).to_be_visible()
    notebook.command("notebook:change-cell-to-markdown")
    expect(traces.locator("visible=true")).to_have_count(0)


@pytest.mark.breadth
def test_a_running_cell_is_counted_and_the_panel_stays_responsive(lab: Lab) -> None:
    page = lab.page
    going = "import os\nx = torch.ones(64, 64)\nwhile not os.path.exists('enough'):\n    x = (x @ x).clamp(0, 1)"
    notebook = lab.open("long.ipynb", LOAD, f"%%devtrace\n{going}", run="first")
    sidebar = Sidebar.open(notebook)
    notebook.cell(1).locator(".jp-InputArea-editor").click()
    notebook.start(1)
    live = sidebar.root.locator("[data-live=ops]")
    live.wait_for()
    expect(sidebar.root.locator("[data-part=live]")).to_contain_text("In[2] is running")
    seen = int(live.inner_text().replace(",", ""))
    page.wait_for_function(
        "seen => Number(document.querySelector('[data-live=ops]').textContent.replaceAll(',', '')) > seen", arg=seen
    )
    section = sidebar.root.locator("details[data-part=devices]")
    section.locator("summary").first.click()
    expect(section).not_to_have_attribute("open", "")
    section.locator("summary").first.click()
    expect(section).to_have_attribute("open", "")
    sidebar.tracing.click()
    expect(sidebar.status).to_contain_text("Waiting for the kernel")
    assert violations(page, PANEL) == []
    (lab.server.folder / "enough").touch()
    notebook.wait_idle()
    sidebar.expect_traces("In[2]")
    expect(live).to_have_count(0)
    expect(sidebar.tracing).to_be_checked()
    expect(sidebar.status).to_be_empty()


def test_names_are_listed_by_device_and_a_mixed_model_by_what_differs(lab: Lab) -> None:
    cells = (
        "%load_ext devtrace\n%devtrace simulate cuda:2\nimport torch\nfrom torch import nn",
        "net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)).to('cuda:1')",
        "net.head = nn.Linear(4, 2)\nsgd = torch.optim.SGD(net.parameters(), lr=0.1)",
        "x = torch.ones(256, 4)\nbatch = {'y': x.cuda()}",
        "del x",
    )
    notebook = lab.open("names.ipynb", *cells)
    sidebar = Sidebar.open(notebook, link="absent")
    for index in range(4):
        notebook.run(index)
    expect(sidebar.row_of("x")).to_contain_text("[256, 4] float32")
    expect(sidebar.row_of("x", "cpu")).to_be_visible()
    expect(sidebar.row_of("batch['y']", "cuda:0")).to_contain_text("4.1 KB")
    mixed = sidebar.root.locator('.dt-side-mixed-model[data-name="net"]')
    expect(mixed.locator('[data-part="head"]')).to_contain_text("Linear")
    expect(mixed.locator('[data-part="head"] [data-device="cpu"]')).to_be_visible()
    expect(sidebar.root.locator('[data-name="sgd"]')).to_contain_text("2 tensors on cpu")
    notebook.run(4)
    expect(sidebar.row_of("x")).to_have_count(0)


@pytest.mark.breadth
def test_a_device_shows_what_is_in_use_of_it_and_the_names_that_keep_most(lab: Lab) -> None:
    cells = (
        "%load_ext devtrace\n%devtrace simulate cuda:1,64MB\nimport torch",
        "net = torch.nn.Linear(1024, 1024).cuda()\nlosses = []",
        "for _ in range(3):\n    losses.append(net(torch.ones(512, 1024, device='cuda')).mean())",
        "del net, losses",
    )
    notebook = lab.open("memory.ipynb", *cells)
    sidebar = Sidebar.open(notebook, link="absent")
    for index in range(3):
        notebook.run(index)
    memory = sidebar.device("cuda:0").locator('[data-memory="cuda:0"]')
    expect(memory).to_contain_text("10.0 MiB of 64.0 MiB in use, at most 12.0 MiB")
    expect(memory.locator("li").first).to_contain_text("graphs that losses keeps")
    expect(memory.locator("li").first).to_contain_text("6.0 MiB")
    expect(memory.locator("li").nth(1)).to_contain_text("the parameters of net")
    assert violations(lab.page, PANEL) == []
    notebook.run(3)
    expect(memory).to_have_count(0)


@pytest.mark.breadth
def test_every_command_is_in_the_palette_and_does_what_its_label_promises(lab: Lab) -> None:
    notebook = lab.open("palette.ipynb", LOAD, "torch.ones(3) + 1", run="first")
    sidebar = Sidebar.open(notebook)
    notebook.command("apputils:activate-command-palette")
    lab.page.locator(".lm-CommandPalette-input").fill("devtrace")
    labels = lab.page.locator(".lm-CommandPalette-itemLabel")
    expect(labels.first).to_be_visible()
    shown = set(labels.all_inner_texts())
    assert set(COMMANDS) <= shown
    lab.page.keyboard.press("Escape")
    notebook.command("devtrace:trace-every-cell")
    expect(sidebar.tracing).to_be_checked()
    notebook.command("devtrace:trace-every-cell")
    expect(sidebar.tracing).not_to_be_checked()
    notebook.command("devtrace:simulate-devices", devices=2)
    expect(sidebar.simulated(2)).to_be_checked()
    notebook.cell(1).locator(".jp-InputArea-editor").click()
    notebook.command("devtrace:trace-cell")
    sidebar.expect_traces("In[2]")
    expect(notebook.cell(1).locator(".dt-stripe")).to_have_count(1)


def test_the_newest_trace_opens_in_a_tab_once(lab: Lab) -> None:
    page = lab.page
    notebook = lab.open("tab.ipynb", LOAD, "%%devtrace\ntorch.ones(3) + 1", run="all")
    notebook.wait_ready("report")
    sidebar = Sidebar.open(notebook)
    sidebar.expect_traces("In[2]")
    notebook.command("devtrace:open-last-trace")
    report = page.locator(".dt-tab-page [data-devtrace=report][data-ready=true]")
    expect(report).to_have_attribute("data-op-count", "2")
    sidebar.traces.first.click()
    expect(page.locator(".dt-tab-page")).to_have_count(1)


@pytest.mark.breadth
def test_the_panel_and_what_was_switched_are_there_again_after_a_reload(page: Page, server: Server) -> None:
    path = server.write("again.ipynb", LOAD, "%%devtrace\ntorch.ones(3)")
    notebook = Notebook.open(page, server, path)
    notebook.run_all()
    notebook.wait_ready("report")
    sidebar = Sidebar.open(notebook)
    sidebar.tracing.click()
    expect(sidebar.tracing).to_be_checked()
    notebook.save()
    notebook.come_back(server)
    sidebar.wait_link("connected")
    expect(sidebar.root).to_contain_text("again.ipynb")
    expect(sidebar.tracing).to_be_checked()
    sidebar.expect_traces("In[2]")
