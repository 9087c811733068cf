"""A notebook as nbconvert's html, opened from the disk without a network: the findings and the picture are there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbconvert import HTMLExporter
from playwright.sync_api import Page, expect
from traitlets.config import Config

import make_traces
from devtrace.api.results import diagnose
from devtrace.report.mime import mime_bundle

pytestmark = pytest.mark.e2e
GROUND = {"light": "rgb(255, 255, 255)", "dark": "rgb(17, 17, 17)"}


STRIPPED = Config(
    HTMLExporter={"preprocessors": ["nbconvert.preprocessors.sanitize.SanitizeHTML"]}, SanitizeHTML={"strip": True}
)
WAYS: dict[str, dict[str, Any]] = {"escaped": {"sanitize_html": True}, "stripped": {"config": STRIPPED}}


def converted(folder: Path, theme: str, **options: Any) -> Path:
    report = diagnose(make_traces.failing())
    data, _ = mime_bundle(report)
    output = nbformat.v4.new_output("display_data", data)
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("%%devtrace\nmodel(x)", outputs=[output])])
    page = folder / f"{theme}.html"
    page.write_text(HTMLExporter(theme=theme, **options).from_notebook_node(notebook)[0], encoding="utf-8")
    return page


@pytest.mark.one_in(2)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nbconvert_keeps_the_findings_and_the_picture(page: Page, tmp_path: Path, theme: str) -> None:
    page.context.set_offline(True)
    page.goto(converted(tmp_path, theme).as_uri())
    expect(page.locator("body")).to_have_css("background-color", GROUND[theme])
    finding = page.locator('[data-devtrace="finding"][data-rule="device-mismatch"]')
    expect(finding).to_contain_text("model.out_head.weight and .bias are on cpu; the other 57 tensors of model are on")
    picture = page.get_by_role("img", name="Timeline of 102 ops")
    expect(picture).to_be_visible()
    # The lanes' names take the page's own colour, so that they can be read on its ground.
    ink = page.evaluate("svg => getComputedStyle(svg).fill", picture.element_handle())
    assert ink == page.evaluate("getComputedStyle(document.querySelector('[data-devtrace=report]')).color")
    assert ink != GROUND[theme]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("way", list(WAYS))
def test_sanitised_by_nbconvert_a_report_is_its_words_and_nothing_of_the_picture(
    page: Page, tmp_path: Path, theme: str, way: str
) -> None:
    """Its cleaner takes tags that it does not know for text, or away; neither may be seen."""
    page.context.set_offline(True)
    page.goto(converted(tmp_path, theme, **WAYS[way]).as_uri())
    output = page.locator(".jp-OutputArea-output")
    expect(output).to_contain_text("model.out_head.weight and .bias are on cpu")
    expect(output.locator("svg")).to_have_count(0)
    words = " ".join(output.inner_text().split())
    assert words == (
        "model.out_head.weight and .bias are on cpu; the other 57 tensors of model are on cuda:0. "
        "It was attached to model after the move, which could not see it. "
        "In[7] line 6 model.out_head(x[:, -1]) addmm · cuda:0 + cpu "
        "Created In[5] line 1 nn.Linear(768, 2) after the move Missed by In[4] line 2 model.to(device) "
        "Fix move it as you attach it: model.out_head = nn.Linear(768, 2).to(device) (not tried) "
        "100 ops on cuda:0, 2 ops on cpu. 1 copy to a device; 8.2 KB copied in total."
    )
    # Nor does what is hidden take room: an empty line or two, however long the picture is.
    box = output.bounding_box()
    assert box
    assert box["height"] < 300
