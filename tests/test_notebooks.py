"""Every notebook runs from top to bottom; a failure is intended where its cell is tagged `raises-exception`."""

from __future__ import annotations

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.notebook

FOLDER = Path(__file__).parents[1] / "notebooks"
FOUND = (path.relative_to(FOLDER) for path in FOLDER.rglob("*.ipynb"))
NOTEBOOKS = sorted(path.as_posix() for path in FOUND if ".ipynb_checkpoints" not in path.parts)


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs_from_top_to_bottom(name: str, tmp_path: Path) -> None:
    notebook = nbformat.read(FOLDER / name, as_version=4)
    environment = {**os.environ, "IPYTHONDIR": str(tmp_path / "ipython")}
    client = NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": FOLDER}})
    client.execute(env=environment)
