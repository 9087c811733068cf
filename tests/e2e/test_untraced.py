"""An untraced cell that fails with a device error: its finding, and the button that traces it."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from e2e.lab import Lab

pytestmark = pytest.mark.e2e


def test_the_error_of_an_untraced_cell_is_explained_and_its_button_traces_the_cell(lab: Lab) -> None:
    notebook = lab.open("untraced.ipynb", "y = torch.ones(8, 8)\nx @ y", warm=True)
    notebook.run(0)
    report = notebook.wait_ready("report")
    expect(report.locator('[data-rule="device-mismatch"]')).to_be_visible()
    expect(report.get_by_role("tab")).to_have_count(0)
    report.get_by_role("button", name="Trace this cell again").click()
    expect(notebook.cell(0).get_by_role("tab", name="Timeline")).to_be_visible()
    expect(notebook.cell(0).get_by_role("button", name="Trace this cell again")).to_have_count(0)
