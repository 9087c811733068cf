"""The code of a page of docs/: its files, its cells and its commands, and what the page shows below each."""

from __future__ import annotations

import os
import re
import shlex
from glob import glob
from pathlib import Path

from shells import new_shell
from warm import Warm

BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.M | re.S)
PYTEST = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def run_cells(page: str, folder: str, language: str) -> list[tuple[bool, str]]:
    """Run the cells of a page in one notebook; of each whether it failed, and all that it put out."""
    os.chdir(folder)
    os.environ["DEVTRACE_LANGUAGE"] = language
    with new_shell() as shell:
        ran = [shell.run(code) for kind, title, code in BLOCK.findall(page) if (kind, title) == ("python", "")]
        return [(each.error is not None, each.text) for each in ran]


def run_command(line: str, folder: Path, warm: Warm, language: str) -> tuple[bool, str]:
    """Run a command of devtrace's or pytest's; any other is passed over."""
    name, *patterns = shlex.split(line, comments=True) or [""]
    words = [word for each in patterns for word in sorted(glob(each, root_dir=folder)) or [each]]
    if name == "devtrace":
        ended = warm.devtrace(folder, *words, environment={"DEVTRACE_LANGUAGE": language})
    elif name == "pytest":
        ended = warm.pytest(folder, "-p", "devtrace.api.pytest_plugin", *words, environment=PYTEST)
    else:
        return False, ""
    return ended.returncode != 0, f"{ended.stdout}{ended.stderr}\nexit code {ended.returncode}"
