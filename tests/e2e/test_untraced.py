"""An untraced cell that fails with a device error: its finding, and the button that traces it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from e2e.lab import Lab
from e2e.notebook import Notebook
from e2e.server import Server
from e2e.sidebar import Sidebar

pytestmark = pytest.mark.e2e


def test_the_error_of_an_untraced_cell_is_explained_and_its_button_traces_the_cell(lab: Lab) -> None:
    notebook = lab.open("untraced.ipynb", "y = torch.ones(8, 8)\nx @ y", warm=True, run="first")
    report = notebook.wait_ready("report")
    expect(report.locator('[data-rule="device-mismatch"]')).to_be_visible()
    expect(report.get_by_role("tab")).to_have_count(0)
    expect(report.locator(".dt-fact")).to_have_count(0)  # no op was counted
    copied = "navigator.clipboard.readText()"
    notebook.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    report.get_by_role("button", name="Copy fix").click()
    expect(report.get_by_role("button", name="Copied")).to_be_visible()
    assert notebook.page.evaluate(copied) == "x @ y.to(x.device)"
    report.get_by_role("button", name="Copy all").click()
    expect(report.get_by_role("button", name="Copied")).to_have_count(2)
    assert notebook.page.evaluate(copied).startswith("✗ `y` is on cpu")
    report.get_by_role("button", name="Trace this cell again").click()
    expect(notebook.cell(0).get_by_role("tab", name="Timeline")).to_be_visible()
    expect(notebook.cell(0).get_by_role("button", name="Trace this cell again")).to_have_count(0)


REACHES_INTO_THE_ARROW = """row => {
    const words = document.createRange();
    words.selectNodeContents(row.querySelector('.dt-message'));
    const arrow = getComputedStyle(row, '::after');
    const left = row.getBoundingClientRect().right - parseFloat(arrow.right) - parseFloat(arrow.width);
    return [...words.getClientRects()].some(({ right }) => right > left);
}"""


@pytest.mark.breadth
def test_a_run_that_succeeds_takes_the_mark_the_stripes_and_the_badge_of_the_error_away(lab: Lab) -> None:
    notebook = lab.open("over.ipynb", "x @ y", "y = torch.ones(8, 8)", "y = y.to('cuda:0')", warm=True)
    notebook.run(1)
    notebook.run(0)
    panel = Sidebar.open(notebook).root
    findings = panel.locator('[data-part="findings"]')
    expect(findings).to_contain_text("1 error")
    assert findings.locator(".dt-finding").first.evaluate(REACHES_INTO_THE_ARROW) is False
    expect(panel.locator('[data-part="traces"]')).to_contain_text("1 error")
    expect(panel.locator('[data-part="traces"]')).not_to_contain_text("0 ns")  # nothing was timed
    expect(notebook.cell(0).locator(".dt-underline")).to_have_count(1)
    notebook.run(2)
    expect(findings).to_contain_text("1 error")
    notebook.run(0)
    expect(notebook.cell(0).locator(".dt-underline")).to_have_count(0)
    expect(findings.locator('[data-severity="error"]')).to_have_count(0)
    expect(findings.locator("h3")).not_to_contain_text("1 error")
    expect(findings).not_to_contain_text("Nothing has been traced")


@pytest.mark.breadth
def test_the_setting_explain_device_errors_switched_off_leaves_an_error_alone(page: Page, server: Server) -> None:
    cells = (
        "%load_ext devtrace\nimport torch",
        "torch.ones(8, device='cuda:0') @ torch.ones(8, 8)",
        "%devtrace explain",
    )
    with server.settings("devtrace:panel", explainErrors=False, simulatedDevices=2):
        notebook = Notebook.open(page, server, server.write("unexplained.ipynb", *cells))
        notebook.run(0)
        sidebar = Sidebar.open(notebook)
        expect(sidebar.simulated(2)).to_be_checked()
        expect(sidebar.tracing).to_have_attribute("aria-disabled", "false")
        notebook.wait_idle()
        notebook.run(1)
        expect(notebook.cell(1).get_by_text("Expected all tensors to be on the same device").first).to_be_visible()
        notebook.run(2)  # what is asked for is answered
        expect(notebook.cell(2).locator('[data-rule="device-mismatch"]')).to_be_visible()
        expect(notebook.cell(1).locator('[data-devtrace="report"]')).to_have_count(0)
