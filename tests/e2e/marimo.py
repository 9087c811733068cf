"""A real marimo in an environment of its own, for the tests of `make e2e-marimo`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from e2e.serving import free_port, running
from folders import ROOT

START_LIMIT = 120  # seconds
HOW_TO_GET_IT = "marimo is not installed: `make e2e-marimo` installs it and runs these tests"
SETTINGS = """\
[runtime]
auto_instantiate = true
[display]
theme = "{theme}"
"""


def executable() -> Path:
    """Return the marimo that is installed, or would be."""
    return Path(os.environ.get("DEVTRACE_MARIMO") or ROOT / "build" / "marimo") / "bin" / "marimo"


def is_installed() -> bool:
    return executable().exists()


@dataclass
class Marimo:
    """A marimo that shows one notebook, and the folder in which that runs."""

    url: str
    folder: Path


@contextmanager
def serve(command: str, notebook: str, folder: Path, theme: str = "light") -> Iterator[Marimo]:
    """Show a notebook for the time of the block: "run" as an app, "edit" to be edited, with its cells run at once."""
    (folder / "notebook.py").write_text(notebook)
    settings = folder / ".config" / "marimo" / "marimo.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(SETTINGS.format(theme=theme))
    address = f"127.0.0.1:{free_port()}"
    host, port = address.split(":")
    line = [str(executable()), command, "notebook.py", "--headless", "--no-token", f"--host={host}", f"--port={port}"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "HOME": str(folder)}
    environment |= {"XDG_CONFIG_HOME": str(folder / ".config")}
    url, log = f"http://{address}", folder / "log"
    with running("marimo", line, f"{url}/health", log, START_LIMIT, cwd=folder, env=environment):
        yield Marimo(url, folder)
