"""A LiveView of a real kernel with the real anywidget, in a frame as Colab gives one to an output.

The front end is emulated by what anywidget asks of one (its AFM): import the module from the widget's state, and call
`render` with a model and an element. Its messages are those that the kernel sent, while the cell runs.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import FrameLocator, Page, expect

import needs
from e2e import marimo
from e2e.frames import SANDBOXES, put_in
from e2e.views import open_every_view
from folders import ROOT
from kernels import Kernel, new_kernel

pytestmark = pytest.mark.foreign

SHOW = """\
%load_ext devtrace
%devtrace simulate cuda:1
import devtrace, pathlib, torch
devtrace.LiveView()"""
TRAIN = """\
%%devtrace
x = torch.ones(4, device="cuda")
while not pathlib.Path("enough").exists():
    x = x.add(1)
x + torch.ones(4)"""
# What a front end of anywidget does with a widget: the messages come by `receive`, what the view sends is in `sent`.
FRONT_END = """<!doctype html><meta charset="utf-8"><div id="widget"></div><script type="module">
const heard = new Set();
globalThis.sent = [];
const bytes = text => new DataView(Uint8Array.from(atob(text), letter => letter.charCodeAt(0)).buffer);
globalThis.receive = (content, buffers) => heard.forEach(hear => hear(content, buffers.map(bytes)));
globalThis.show = async state => {
  const model = {
    get: name => state[name],
    set: (name, value) => { state[name] = value; },
    save_changes: () => {},
    on: (event, hear) => { if (event === 'msg:custom') heard.add(hear); },
    off: (event, hear) => heard.delete(hear),
    send: content => { sent.push(content); }
  };
  const url = URL.createObjectURL(new Blob([state._esm], { type: 'text/javascript' }));
  const { default: widget } = await import(url);
  globalThis.remove = await widget.render({ model, el: document.getElementById('widget') });
};
</script>"""
FRAMED = """([content, sandbox, id]) => {
  const frame = document.createElement('iframe');
  Object.assign(frame, { id, srcdoc: content, width: '100%', height: '700' });
  frame.sandbox = sandbox;
  document.body.append(frame);
}"""


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    needs.present(marimo.is_installed(), marimo.HOW_TO_GET_IT)


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    """Give a kernel that takes itself for Colab's, with an anywidget: that of marimo's environment."""
    python = str(marimo.executable().with_name("python"))
    with new_kernel(python, PYTHONPATH=str(ROOT / "src"), COLAB_RELEASE_TAG="release") as started:
        started.run("import os", f"os.chdir({str(tmp_path)!r})")
        yield started


def add_frame(page: Page, content: str, sandbox: str, id: str) -> FrameLocator:
    page.evaluate(FRAMED, [content, sandbox, id])
    return page.frame_locator(f"#{id}")


class Widget:
    """A view in its frame, and the comm by which the kernel talks to it."""

    def __init__(self, frame: FrameLocator, opened: dict[str, Any]) -> None:
        self.comm, self._body = opened["comm_id"], frame.locator("body")
        self.view = frame.locator('[data-devtrace="live"][data-ready="true"]')
        self._body.evaluate("(_, state) => show(state)", opened["data"]["state"])
        self.view.wait_for()

    def take(self, output: dict[str, Any]) -> int:
        """Give the view what the kernel sent, if it is for it, and return how many ops it shows now."""
        if output["type"] == "comm_msg" and output["comm_id"] == self.comm:
            buffers = [base64.b64encode(buffer).decode() for buffer in output["buffers"]]
            message = [output["data"]["content"], buffers]
            self._body.evaluate("(_, [content, buffers]) => receive(content, buffers)", message)
        return int(self.view.get_attribute("data-op-count") or 0)

    def answer(self, kernel: Kernel) -> None:
        """Send the kernel what the view has sent."""
        for content in self._body.evaluate("() => sent.splice(0)"):
            kernel.send(self.comm, content)


@pytest.mark.parametrize("sandbox", SANDBOXES)
def test_a_live_view_grows_in_a_frame_while_the_cell_runs_and_the_report_comes_after(
    page: Page, kernel: Kernel, tmp_path: Path, sandbox: str
) -> None:
    enough = tmp_path / "enough"
    page.context.set_offline(True)
    shown = kernel.run(*SHOW.splitlines())
    [opened] = [output for output in shown.outputs if "_esm" in output.get("data", {}).get("state", {})]
    widget = Widget(add_frame(page, FRONT_END, sandbox, "live"), opened)
    expect(widget.view).to_contain_text("waiting for a traced cell")
    widget.answer(kernel)
    counts = {0}

    def take(output: dict[str, Any]) -> None:
        counts.add(widget.take(output))
        if len(counts) > 4:
            enough.touch()

    ran = kernel.run(*TRAIN.splitlines(), at=take)
    assert ran.status == "error"
    expect(widget.view).to_contain_text("done")
    expect(widget.view).to_contain_text("cuda:0")
    widget.view.locator('[data-devtrace="timeline"][data-ready="true"]').wait_for()
    [html] = [output["data"]["text/html"] for output in ran.outputs if "text/html" in output.get("data", {})]
    report = add_frame(page, put_in(html), sandbox, "report")
    expect(report.locator('[data-devtrace="finding"][data-rule="device-mismatch"]')).to_have_count(1)
    open_every_view(report)
