"""What a trace costs in JupyterLab itself, against the budgets of the design: Lab's own work is waited for too.

100,000 ops arrive as an output of an open notebook; 1,000,000 are opened as a file, as a double click does. The best of
several runs, from asking to the painted timeline.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "harness"))
sys.path.insert(0, str(Path(__file__).parents[1]))

from playwright.sync_api import Page, sync_playwright

import make_traces
from devtrace.report.mime import MIME_TYPE
from devtrace.trace.format import encode, save
from e2e import chromium
from e2e.browser import Chromium
from e2e.notebook import Notebook
from e2e.server import Server, serve

RUNS = 3

PAINTED = """
const painted = async () => {
  while (!document.querySelector('[data-devtrace="timeline"][data-ready="true"]')) {
    await new Promise(requestAnimationFrame);
  }
};
"""
OUTPUT = f"""async ([type, data]) => {{
  {PAINTED}
  const [cell] = jupyterapp.shell.currentWidget.content.widgets;
  const begin = performance.now();
  cell.model.outputs.add({{ output_type: 'display_data', data: {{ [type]: data }}, metadata: {{}} }});
  await painted();
  const time = performance.now() - begin;
  cell.model.outputs.clear();
  return time;
}}"""
FILE = f"""async path => {{
  {PAINTED}
  const begin = performance.now();
  const widget = await jupyterapp.commands.execute('docmanager:open', {{ path }});
  await painted();
  const time = performance.now() - begin;
  widget.close();
  return time;
}}"""


def best(page: Page, code: str, argument: Any) -> float:
    return min(float(page.evaluate(code, argument)) for _ in range(RUNS))


def rows(page: Page, server: Server) -> list[tuple[str, float, float]]:
    """Return what was measured, its figure and its budget, ms."""
    save(make_traces.million(), server.folder / "million.devtrace")
    Notebook.open(page, server, server.write("bench.ipynb", "1"))
    hundred = best(page, OUTPUT, [MIME_TYPE, encode(make_traces.million(100_000))])
    million = best(page, FILE, "million.devtrace")
    return [
        ("100,000 ops, output to painted, in JupyterLab", hundred, 1000),
        ("1,000,000 ops, file to painted, in JupyterLab", million, 3000),
    ]


def main() -> int:
    executable = chromium.find() or sys.exit(chromium.HOW_TO_GET_IT)
    with tempfile.TemporaryDirectory() as folder, serve(Path(folder)) as server, sync_playwright() as playwright:
        with Chromium(playwright, executable).context() as context:
            table = rows(context.new_page(), server)
        server.shut_kernels_down()
    print("| JupyterLab | | budget |\n|---|---:|---:|")
    for name, figure, budget in table:
        print(f"| {name} | {figure:.0f} ms | {budget:.0f} ms |")
    return int(any(figure > budget for _, figure, budget in table))


if __name__ == "__main__":
    sys.exit(main())
