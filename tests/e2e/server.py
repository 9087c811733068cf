"""A real Jupyter server for the end-to-end tests: JupyterLab and Notebook 7 on one port, in a folder of its own.

It sees this checkout's build of the extension and its sources, whatever is installed; nothing of the user's settings.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import nbformat

from built import EXTENSION
from e2e.serving import free_port, wait_for
from folders import ROOT

START_LIMIT = 120  # seconds; 2 to 5 on a quiet machine
ANSWER_LIMIT = 60  # seconds; it ends a kernel before it answers
STOP_LIMIT = 6  # one on a quiet machine; longer where a page has just asked for a kernel, which nobody needs now
TOKEN = "e2e"


@dataclass
class Server:
    """A running server, and the folder it serves."""

    url: str
    folder: Path

    def write(self, name: str, *cells: str | dict[str, Any], kernel: str = "python3") -> str:
        """Write a notebook of these sources (or ready cells) into the served folder; the result is its path there."""
        notebook = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": kernel, "display_name": kernel}})
        notebook.cells = [nbformat.v4.new_code_cell(cell) if isinstance(cell, str) else cell for cell in cells]
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook, path)
        return name

    def read(self, name: str) -> Any:
        """Return the notebook as it is saved."""
        return nbformat.read(self.folder / name, as_version=4)

    @contextmanager
    def settings(self, plugin: str, **values: object) -> Iterator[None]:
        """Yield the user's settings of a plugin (package:name), for pages that are opened in the block."""
        package, _, name = plugin.partition(":")
        path = self.folder.parent / "home" / "settings" / package / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
        try:
            yield
        finally:
            path.unlink()

    def api(self, method: str, path: str) -> Any:
        request = urllib.request.Request(f"{self.url}api/{path}", method=method)
        request.add_header("Authorization", f"token {TOKEN}")
        with urllib.request.urlopen(request, timeout=ANSWER_LIMIT) as response:
            return json.loads(response.read() or "null")

    def shut_kernels_down(self) -> None:
        for what in ("sessions", "kernels"):
            with suppress(HTTPError):  # the server stumbles over one that goes by itself just now
                for running in self.api("GET", what):
                    with suppress(HTTPError):
                        self.api("DELETE", f"{what}/{running['id']}")


@contextmanager
def serve(base: Path, *, extension: bool = True) -> Iterator[Server]:
    """Run a server below `base` for the time of the block; without `extension` it is one that never heard of ours."""
    folder = base / "served"
    folder.mkdir(parents=True)
    environment = _environment(base)
    if not extension:
        _disable_extension(Path(environment["JUPYTER_CONFIG_DIR"]))
    log = base / "server.log"
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"]
    command += [f"--{app}.expose_app_in_browser=True" for app in ("LabApp", "JupyterNotebookApp")]
    command += [
        f"--ServerApp.root_dir={folder}",
        f"--IdentityProvider.token={TOKEN}",
        f"--ServerApp.port={free_port()}",  # Jupyter takes the next one where somebody was quicker
    ]
    command += ["--ServerApp.ip=127.0.0.1", "--ServerApp.open_browser=False"]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, env=environment, cwd=folder, stdout=output, stderr=output, start_new_session=True
        )
    try:
        yield Server(_wait_for(process, Path(environment["JUPYTER_RUNTIME_DIR"]), log), folder)
    finally:
        _stop(process)


def _environment(base: Path) -> dict[str, str]:
    user_folder = base / "home"
    settings = user_folder / "settings"
    extensions = user_folder / "share" / "labextensions"
    extensions.mkdir(parents=True)
    (extensions / "devtrace").symlink_to(EXTENSION)
    news = settings / "@jupyterlab" / "apputils-extension" / "notification.jupyterlab-settings"
    news.parent.mkdir(parents=True)
    news.write_text(json.dumps({"fetchNews": "false", "checkForUpdates": False}))
    of_the_user = ("JUPYTER", "IPYTHON", "DEVTRACE", "LC_", "LANG")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(of_the_user)}
    return kept | {
        "LANG": "C.UTF-8",
        "HOME": str(user_folder),
        "IPYTHONDIR": str(user_folder / "ipython"),
        "JUPYTER_CONFIG_DIR": str(user_folder / "config"),
        "JUPYTER_DATA_DIR": str(user_folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(user_folder / "runtime"),
        "JUPYTER_PATH": str(user_folder / "share"),
        "JUPYTERLAB_SETTINGS_DIR": str(settings),
        "JUPYTERLAB_WORKSPACES_DIR": str(user_folder / "workspaces"),
        "PYTHONPATH": str(ROOT / "src"),
    }


def _disable_extension(config: Path) -> None:
    page_config = config / "labconfig" / "page_config.json"
    page_config.parent.mkdir(parents=True)
    page_config.write_text(json.dumps({"disabledExtensions": {"devtrace": True}}))


def _wait_for(process: subprocess.Popen[bytes], runtime: Path, log: Path) -> str:
    """Return the url that the server writes into its runtime file, once it answers there; it writes a little before."""
    end = time.monotonic() + START_LIMIT
    file = runtime / f"jpserver-{process.pid}.json"
    while time.monotonic() < end and process.poll() is None:
        if file.exists() and (text := file.read_text()):
            url = str(json.loads(text)["url"])
            wait_for(process, "Jupyter server", f"{url}api", log, START_LIMIT)
            return url
        time.sleep(0.05)
    raise AssertionError(f"no Jupyter server after {START_LIMIT} s or it ended:\n{log.read_text()[-3000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the server and, should it not do so itself, the kernels it started (they are of its process group)."""
    process.terminate()
    try:
        process.wait(timeout=STOP_LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
