"""A real VS Code in a browser (code-server from npm), for the tests of `make e2e-vscode`.

It runs with settings of its own and no kernel; what is opened is a folder with notebooks.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from playwright.sync_api import Frame, Page

from e2e.serving import free_port, running
from folders import ROOT

START_LIMIT = 120  # seconds
HOW_TO_GET_IT = "code-server is not installed: `make e2e-vscode` installs it (two minutes) and runs these tests"
VSIX = ROOT / "build" / "devtrace.vsix"
SETTINGS = {
    "chat.disableAIFeatures": True,
    "extensions.autoCheckUpdates": False,
    "security.workspace.trust.startupPrompt": "never",
    "security.workspace.trust.banner": "never",
    "telemetry.telemetryLevel": "off",
    # Else a notebook that is opened before VS Code has read its extensions is opened as text.
    "workbench.editorAssociations": {"*.ipynb": "jupyter-notebook"},
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.startupEditor": "none",
}


def folder() -> Path:
    """Return where code-server is installed, or would be."""
    return Path(os.environ.get("DEVTRACE_CODE_SERVER") or ROOT / "build" / "code-server")


def is_installed() -> bool:
    return (folder() / "node").exists()


@dataclass
class VSCode:
    """A running code-server, and the folder that it opens."""

    url: str
    opened: Path

    def write(self, name: str, bundle: dict[str, Any]) -> str:
        """Write a notebook whose one cell has this output."""
        output = nbformat.v4.new_output("display_data", bundle)
        cell = nbformat.v4.new_code_cell("%%devtrace\nmodel(x)", outputs=[output])
        nbformat.write(nbformat.v4.new_notebook(cells=[cell]), self.opened / name)
        return name

    def open(self, page: Page, name: str, shows: str) -> Frame:
        """Open a notebook by a double click and return the frame of its outputs, once one shows a selector."""
        page.goto(f"{self.url}/?folder={self.opened}")
        page.get_by_role("treeitem", name=name).dblclick()
        page.locator(".notebookOverlay").first.wait_for()
        outputs = page.frame_locator("iframe.webview").frame_locator("iframe#active-frame")
        outputs.locator(shows).first.wait_for()
        return next(frame for frame in page.frames if frame.locator(shows).count())


@contextmanager
def serve(base: Path, *, extension: bool = True, trusted: bool = True, **settings: object) -> Iterator[VSCode]:
    """Run VS Code for the time of the block, with our extension or without, in a folder that is trusted or not."""
    opened, data = base / "opened", base / "data"
    opened.mkdir(parents=True)
    (data / "User").mkdir(parents=True)
    chosen = SETTINGS | {"security.workspace.trust.enabled": not trusted} | settings
    (data / "User" / "settings.json").write_text(json.dumps(chosen))
    entry = folder() / "node_modules" / "code-server" / "out" / "node" / "entry.js"
    command = [str(folder() / "node"), str(entry), "--config", str(base / "config.yaml")]
    command += ["--user-data-dir", str(data), "--extensions-dir", str(base / "extensions"), "--auth", "none"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("VSCODE")}
    if extension:
        subprocess.run([*command, "--install-extension", str(VSIX)], check=True, env=environment, capture_output=True)
    address = f"127.0.0.1:{free_port()}"
    command += ["--bind-addr", address, "--disable-telemetry", "--disable-update-check"]
    url, log = f"http://{address}", base / "server.log"
    with running("code-server", command, f"{url}/healthz", log, START_LIMIT, env=environment):
        yield VSCode(url, opened)
