"""Every notebook is what its source makes, runs from top to bottom, and shows what it was committed with."""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
import pytest
import torch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

import make_notebooks as notebooks  # noqa: E402 (tools/ is no package)

pytestmark = pytest.mark.notebook

LARGEST = 300 * 1024
STALE = "is stale: run `make notebook-outputs` and read the difference"
MADE = notebooks.all_notebooks()
EACH = [(name, language) for name, made in MADE.items() for language in made]


def committed(name: str, language: str = "en") -> nbformat.NotebookNode:
    node: nbformat.NotebookNode = nbformat.read(notebooks.place(name, language), as_version=4)
    return node


def test_there_are_notebooks_and_each_has_a_source() -> None:
    found = {path for path in notebooks.FOLDER.rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts}
    assert found == {notebooks.place(name, language) for name, language in EACH}
    assert found


@pytest.mark.parametrize(("name", "language"), EACH)
def test_a_notebook_has_the_cells_of_its_source(name: str, language: str) -> None:
    cells = [(cell.cell_type, cell.source) for cell in committed(name, language).cells]
    assert cells == [(cell.cell_type, cell.source) for cell in MADE[name][language].cells], f"{name} {STALE}"


@pytest.mark.parametrize(("name", "language"), EACH)
def test_a_notebook_shows_the_same_in_every_language(name: str, language: str) -> None:
    assert notebooks.outputs(committed(name, language)) == notebooks.outputs(committed(name))


@pytest.mark.parametrize(("name", "language"), EACH)
def test_a_notebook_is_small_enough_to_be_shown_on_the_web(name: str, language: str) -> None:
    assert notebooks.place(name, language).stat().st_size <= LARGEST


@pytest.mark.parametrize("name", MADE)
def test_a_notebook_runs_from_top_to_bottom_and_shows_what_it_shows_here(name: str) -> None:
    ran = notebooks.execute(MADE[name]["en"])
    if torch.cuda.is_available():
        pytest.skip("it ran; what it shows is committed as simulated devices show it")
    assert notebooks.shown(ran) == notebooks.shown(committed(name)), f"{name} {STALE}"
