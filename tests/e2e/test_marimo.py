"""A real marimo: a report as the last expression of a reactive cell, alive in the frame that marimo gives it."""

from __future__ import annotations

import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.error import URLError

import pytest
from playwright.sync_api import Page, expect

from built import ROOT, stale
from e2e.views import TABS

pytestmark = pytest.mark.foreign

START_LIMIT = 120  # seconds
HOW_TO_GET_IT = "marimo is not installed: `make e2e-marimo` installs it and runs these tests"
MARIMO = Path(os.environ.get("DEVTRACE_MARIMO") or ROOT / "build" / "marimo") / "bin" / "marimo"
NOTEBOOK = """\
import marimo
app = marimo.App()

@app.cell
def _():
    import torch
    import devtrace
    from torch import nn
    return devtrace, nn, torch

@app.cell
def _(devtrace, nn, torch):
    with devtrace.record(simulate="cuda:1") as recording:
        try:
            model = nn.Linear(4, 2)
            model(torch.ones(2, 4, device="cuda"))
        except RuntimeError:
            pass
    return (recording,)

@app.cell
def _(recording):
    recording.report
    return
"""


@pytest.fixture(scope="module")
def marimo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Give the address of a marimo that shows the notebook."""
    assert not (reason := stale()), reason
    if not MARIMO.exists():
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(HOW_TO_GET_IT)
    folder = tmp_path_factory.mktemp("marimo")
    (folder / "notebook.py").write_text(NOTEBOOK)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [str(MARIMO), "run", "notebook.py", "--headless", "--no-token", "--host=127.0.0.1", f"--port={port}"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "HOME": str(folder)}
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
    try:
        _wait_for(process, url := f"http://127.0.0.1:{port}", folder / "log")
        yield url
    finally:
        process.terminate()
        process.wait(timeout=START_LIMIT)


def _wait_for(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    end = time.monotonic() + START_LIMIT
    while time.monotonic() < end and process.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/health", timeout=START_LIMIT).close()
            return
        except URLError:
            time.sleep(0.05)
    raise AssertionError(f"no marimo after {START_LIMIT} s or it ended:\n{log.read_text()[-3000:]}")


def test_a_report_as_the_last_expression_is_alive(page: Page, marimo: str) -> None:
    page.goto(marimo)
    outputs = page.frame_locator("iframe")
    outputs.locator('.dt-report[data-ready="true"]').wait_for()
    finding = outputs.locator('[data-devtrace="finding"][data-rule="device-mismatch"]')
    expect(finding).to_contain_text("model.weight")
    expect(finding).to_contain_text("addmm")
    # An app runs its cells as lines of their file; a notebook that is edited runs each as a file of its own.
    expect(finding).to_contain_text("notebook.py line")
    for tab in TABS:
        outputs.get_by_role("tab", name=tab, exact=True).click()
        outputs.locator(f'[data-devtrace="{tab.lower()}"][data-ready="true"]').wait_for()


def test_a_small_report_is_seen_whole_in_its_frame(page: Page, marimo: str) -> None:
    page.goto(marimo)
    outputs = page.frame_locator("iframe")
    outputs.locator('[data-devtrace="timeline"][data-ready="true"]').wait_for()
    frame = page.locator("iframe").element_handle()
    assert frame is not None
    page.wait_for_function(
        "frame => frame.contentDocument.documentElement.scrollHeight <= frame.clientHeight + 1", arg=frame
    )
