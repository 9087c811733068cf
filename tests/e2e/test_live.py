"""LiveView in a real JupyterLab: it grows while the cell runs, says how far it is, and stops it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from e2e.notebook import Notebook
from e2e.server import Server

pytestmark = pytest.mark.e2e

SHOW = "%load_ext devtrace\n%devtrace simulate cuda:1\nimport devtrace, torch\ndevtrace.LiveView()"
TRAIN = """%%devtrace
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
while True:
    x = torch.randn(16, 8).cuda()
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

NEXT = "%%devtrace\nx = torch.ones(2, device='cuda')\ny = torch.ones(2)"
# What the view's two lanes are labelled with, from the pixels of their swatches. A view paints only where it is in
# sight, and JupyterLab scrolls to the cell that ran whenever its output grows: each look brings the view back.
COLOURS = """() => {
  const canvas = document.querySelector('[data-devtrace=live] canvas');
  canvas.scrollIntoView({ block: 'center' });
  const { data, width, height } = canvas.getContext('2d').getImageData(0, 0, 12, canvas.height);
  const seen = new Set();
  for (let y = 0; y < height; y++) seen.add(data.slice((y * width + 6) * 4, (y * width + 6) * 4 + 3).join());
  return [...seen];
}"""

KEPT = f"""before => {{
  const now = ({COLOURS})();
  return now.length > 2 && now.join() === before.filter(each => now.includes(each)).join();
}}"""


def test_a_busy_training_loop_is_seen_and_stopped(page: Page, server: Server) -> None:
    notebook = Notebook.open(page, server, server.write("live.ipynb", SHOW, TRAIN, NEXT))
    notebook.run(0)
    live = notebook.wait_ready("live")
    expect(live).to_contain_text("waiting for a traced cell")
    expect(live.get_by_role("button", name="Stop")).to_be_disabled()
    notebook.cell(1).locator(".jp-InputArea-editor").click()
    notebook.page.keyboard.press("Control+Enter")
    live.locator('[data-devtrace="timeline"][data-ready="true"]').wait_for()
    expect(live).to_contain_text("running")
    expect(live).to_contain_text("cuda:0")
    count = "document.querySelector('[data-devtrace=live]').dataset.opCount"
    first = int(live.get_attribute("data-op-count") or 0)
    page.wait_for_function(f"first => Number({count}) > first + 100", arg=first)
    live.get_by_role("button", name="Stop").click()
    notebook.wait_idle()
    expect(live).to_contain_text("done")
    expect(live.get_by_role("button", name="Stop")).to_be_disabled()
    expect(notebook.cell(1)).to_contain_text("KeyboardInterrupt")
    report = notebook.wait_ready("report")
    assert int(report.get_attribute("data-op-count") or 0) > 100
    expect(report.locator('[data-device="cuda:0"]').first).to_be_visible()
    # JupyterLab may scroll away between two looks: what is kept is the look that saw both lanes.
    both_lanes = f"() => {{ const seen = ({COLOURS})(); return seen.length > 2 && seen; }}"
    before = page.wait_for_function(both_lanes).json_value()
    notebook.run(2)
    # The next recording meets the devices in another order: each keeps its colour. An op that the interrupt cut short
    # has a lane of its own, of no device, which the next recording has not.
    page.wait_for_function("document.querySelector('[data-devtrace=live]').dataset.opCount === '2'")
    page.wait_for_function(KEPT, arg=before)
