"""The dtype beside the device, where it is not that of most parameters: in the module graph, among ops, in the card."""

from __future__ import annotations

import pytest
import torch
from playwright.sync_api import Page, expect
from torch import nn

import devtrace
from devtrace.trace.tables import TraceData
from e2e.views import Views, violations

pytestmark = [pytest.mark.e2e, pytest.mark.one_in(2)]


def half_a_model_runs() -> None:
    model = nn.Sequential()
    model.body = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model.to(torch.bfloat16)
    model.head = nn.Linear(4, 2)
    model(torch.ones(3, 4, dtype=torch.bfloat16))


def of_two_dtypes() -> TraceData:
    """Return the trace of a model in bfloat16 whose head is float32, which raises there."""
    with pytest.raises(RuntimeError, match="dtype"), devtrace.record() as recording:
        half_a_model_runs()
    (found, *_) = recording.report.findings
    assert found.rule == "dtype-mismatch"
    return recording.report.trace


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_dtype_that_is_not_the_usual_one_is_beside_the_device_and_in_the_card_of_an_op(
    page: Page, theme: str
) -> None:
    views = Views(page, theme)
    views.mount(of_two_dtypes())
    modules = views.open("Modules")
    expect(modules.locator('[data-module="model.head"]')).to_contain_text("Linear · float32")
    expect(modules.locator('[data-module="model.body"]')).not_to_contain_text("float")
    ops = views.open("Ops")
    ops.get_by_role("searchbox").fill("addmm head")
    expect(ops.get_by_role("row").filter(has_text="addmm")).to_contain_text("cpu · bfloat16 + float32")
    ops.get_by_role("searchbox").fill("addmm body")
    expect(ops.get_by_role("row").filter(has_text="addmm").first).not_to_contain_text("·")
    assert violations(page) == []
    page.locator('[data-devtrace="finding"]').first.click()
    views.open("Timeline")
    plot = page.get_by_role("application")
    plot.focus()
    page.keyboard.press("Shift+ArrowLeft")
    page.keyboard.press("Shift+ArrowRight")
    card = page.locator(".dt-card")
    expect(card.locator(".dt-card-title")).to_have_text("aten.addmm")
    expect(card).to_contain_text("cpu · bfloat16 + float32")
    expect(card).to_contain_text("[4, 2] float32")
